import { present } from "../api/answer";
import { useTenant, useTopics } from "../api/questions";
import type { TopicItem, Topics } from "../api/shapes";
import { useHere } from "../app/router";
import { colours } from "../charts/colours";
import { type Group, Treemap } from "../charts/treemap";
import { money } from "../format/money";
import { larger, read, sum, type Units } from "../money/money";
import { Amount, Card, Delta, share } from "../ui/card";
import { topicsFile } from "../ui/csv";
import { LeftAside } from "../ui/filters";
import { Answered, Bone, Empty } from "../ui/states";
import { Table } from "../ui/table";
import { Toolbar } from "../ui/toolbar";
import { extra, type View } from "../url/view";
import { say } from "../words/say";
import { maybe } from "./costs/facts";

const MOST = 1000;

/** Which topic: clusters and their topics as areas, and as a table. */
export function TopicsPage() {
  const here = useHere();
  const name = here.tenant ?? "";
  const tenant = present(useTenant(name));
  const query = useTopics(name, here.view, MOST);
  if (tenant && !tenant.features.topics)
    return (
      <Empty title={say("Costs of topics are not attributed")}>
        <p>{say("Switch topic attribution on in the configuration of this tenant, and recalculate the days.")}</p>
      </Empty>
    );
  return (
    <>
      <Toolbar file={topicsFile(name, here.view)} currencies />
      <Answered answer={query} skeleton={<Bone height={40} />}>
        {(found) =>
          found.items.length === 0 ? (
            <Empty title={say("No topics in this view")} />
          ) : (
            <AllTopics topics={found} currency={found.currency} />
          )
        }
      </Answered>
    </>
  );
}

function AllTopics({ topics, currency }: { topics: Topics; currency: string }) {
  const here = useHere();
  const { cluster, topic } = here.view.extra;
  const items = cluster ? topics.items.filter((each) => each.cluster_resource_id === cluster) : topics.items;
  const groups = grouped(items, (id) =>
    here.to(extra({ ...here.view, extra: {} }, "cluster", cluster === id ? null : id)),
  );
  const whole = cluster ? sum(items.map((each) => read(each.amount))) : read(topics.total);
  return (
    <>
      <LeftAside subject={say("Topics")} keys={topics.ignored_filters} />
      <Card
        title={say("{n} {n|topic|topics}, {amount}", {
          n: items.length + (cluster ? 0 : (topics.other?.count ?? 0)),
          amount: money(whole, currency),
        })}
        note={cluster ? say("of one cluster") : say("area is the cost; press a cluster to see it alone")}
        action={
          cluster && (
            <a className="more" href={here.to({ ...here.view, extra: {} })}>
              {say("all clusters")}
            </a>
          )
        }
      >
        <Treemap groups={groups} currency={currency} whole={whole} />
      </Card>
      <TopicTable items={items} whole={whole} currency={currency} lit={topic ?? null} />
    </>
  );
}

function grouped(items: readonly TopicItem[], to: (cluster: string) => string): Group[] {
  const clusters = [...Map.groupBy(items, (each) => each.cluster_resource_id)];
  const total = (list: readonly TopicItem[]): Units => sum(list.map((each) => read(each.amount)));
  clusters.sort(([, a], [, b]) => larger(total(a), total(b)));
  const classes = colours(
    "cluster",
    clusters.slice(0, 8).map(([id]) => id),
  );
  return clusters.map(([id, list], n) => ({
    key: id,
    name: list[0]?.cluster_name ?? id,
    colour: classes[n] ?? "k-others",
    href: to(id),
    leaves: list.map((each) => ({
      key: each.topic_name,
      name: each.topic_name,
      amount: read(each.amount),
      href: to(id),
    })),
  }));
}

/** The rows that a topic's sum is made of. */
function rowsOf(view: View, { cluster_resource_id: cluster, topic_name: topic }: TopicItem): View {
  return { ...view, extra: { tab: "topics", cluster, topic } };
}

interface TableProps {
  items: readonly TopicItem[];
  whole: Units;
  currency: string;
  lit: string | null;
}

function TopicTable({ items, whole, currency, lit }: TableProps) {
  const here = useHere();
  const traffic = items.some((each) => each.bytes_in != null || each.zombie);
  return (
    <Card title={say("The same as a table")} note={say("the most expensive first")}>
      <Table
        className="tall"
        label={say("Table of topics")}
        heads={[
          say("Topic"),
          say("Cluster"),
          traffic && say("Traffic"),
          { name: say("Share"), end: true },
          { name: say("Change [of an amount]"), end: true },
          { name: say("Amount"), end: true },
        ]}
      >
        {items.map((each) => (
          <tr
            key={`${each.cluster_resource_id} ${each.topic_name}`}
            className={each.topic_name === lit ? "lit" : undefined}
          >
            <th scope="row">
              <a className="more" href={here.to(rowsOf(here.view, each), "rows")}>
                {each.topic_name}
                <span className="sr">{say(": its rows")}</span>
              </a>
            </th>
            <td>
              <a className="more" href={here.to({ ...here.view, extra: { cluster: each.cluster_resource_id } })}>
                {each.cluster_name ?? each.cluster_resource_id}
              </a>
            </td>
            {traffic && (
              <td>
                {each.zombie ? (
                  <span className="warn">{say("none: costs without traffic")}</span>
                ) : (
                  <span className="quiet">{say("yes [there is traffic]")}</span>
                )}
              </td>
            )}
            <td className="end num">{share(read(each.amount), whole)}</td>
            <td className="end">
              <Delta amount={read(each.amount)} previous={maybe(each.previous)} currency={currency} />
            </td>
            <td className="end">
              <Amount amount={each.amount} currency={currency} />
            </td>
          </tr>
        ))}
      </Table>
    </Card>
  );
}
