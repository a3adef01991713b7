import { address } from "../api/address";
import { asking, present, useAnswer } from "../api/answer";
import { useCategories } from "../api/categories";
import { question, useTenant } from "../api/questions";
import type { UnitCosts } from "../api/shapes";
import { useHere } from "../app/router";
import { full } from "../format/days";
import { grouped } from "../format/formats";
import { money } from "../format/money";
import { dimension, label } from "../format/names";
import { Card, Exact } from "../ui/card";
import { Choice } from "../ui/choice";
import { LeftAside } from "../ui/filters";
import { Answered, Bone, Empty, Warning } from "../ui/states";
import { Table } from "../ui/table";
import { Toolbar } from "../ui/toolbar";
import { filterKey, sumsQuery, takes, toggle } from "../url/view";
import { say } from "../words/say";
import { filterValue } from "./costs/facts";

const OF_IDENTITIES = ["identity_id", "environment_id", "resource_id", "product_type"];
const OF_TOPICS = ["topic_name", "cluster_resource_id", "product_type"];

interface Per {
  per: UnitCosts["per"];
  title: string;
  /** What can be grouped by; tags and cost categories as well. */
  by: readonly string[];
  ofTopics: boolean;
}

const PERS: readonly Per[] = [
  { per: "gib_in", title: say("GiB written"), by: OF_IDENTITIES, ofTopics: false },
  { per: "gib_out", title: say("GiB read"), by: OF_IDENTITIES, ofTopics: false },
  { per: "gib_stored", title: say("GiB stored"), by: OF_TOPICS, ofTopics: true },
  { per: "topic", title: say("Topic"), by: OF_TOPICS, ofTopics: true },
];
const [USUAL] = PERS as [Per, ...Per[]];
const MOST = 200;
const TITLES: Record<string, string> = { topic_name: say("Topic"), cluster_resource_id: say("Cluster") };
/** The units of the service that other languages have words of their own for. */
const UNITS: Record<string, string> = { "GiB-day": say("GiB-day"), "topic-day": say("topic-day") };

function titleOfPer(per: UnitCosts["per"]): string {
  return PERS.find((each) => each.per === per)?.title ?? per;
}

function titleOf(by: string): string {
  return TITLES[by] ?? dimension(by);
}

/** What one unit of usage cost: a GiB written, read or stored, or a topic. */
export function UnitsPage() {
  const here = useHere();
  const name = here.tenant ?? "";
  const tenant = present(useTenant(name));
  const categories = present(useCategories(name))?.items.map((each) => `category:${each.key}`);
  const offered = PERS.filter((each) => !each.ofTopics || tenant?.features.topics !== false);
  const found = offered.find((each) => each.per === here.view.extra.per) ?? USUAL;
  const tags = tenant?.tag_keys.map((each) => `tag:${each.key}`);
  const choices = [found.by, tags, categories].filter((each) => each !== undefined).flat();
  const by = choices.find((each) => each === here.view.extra.group) ?? found.by[0] ?? "";
  const query = { ...sumsQuery(here.view, { compare: false }), per: found.per, group_by: [by], limit: MOST };
  const asked = { query, filters: here.view.filters };
  const costs = useAnswer(asking(question(name, "/unit-costs", asked), by));
  const file = { href: address(name, "/unit-costs.csv", asked), name: `${name}-unit-costs.csv` };
  return (
    <>
      <Toolbar compare={false} file={file} currencies />
      <Choice
        name={say("Costs per")}
        values={offered.map((each) => [each.per, each.title])}
        chosen={found.per}
        field="per"
      />
      <Choice
        name={say("By [grouped]")}
        values={choices.map((each) => [each, titleOf(each)])}
        chosen={by}
        field="group"
      />
      <Answered answer={costs} skeleton={<Bone height={30} />}>
        {(answer, of) => <Listed answer={answer} by={of} title={titleOfPer(answer.per)} />}
      </Answered>
    </>
  );
}

function Listed({ answer, by, title }: { answer: UnitCosts; by: string; title: string }) {
  const { total, currency, missing_days: missing } = answer;
  if (answer.items.length === 0) return <Empty title={say("No costs in this view")} />;
  const more = answer.groups - answer.items.length;
  const unit = UNITS[answer.unit] ?? answer.unit;
  const days = missing.slice(0, 5).map(full).join(", ");
  return (
    <>
      <LeftAside subject={say("Topics")} keys={answer.ignored_filters} />
      {missing.length > 0 && (
        <Warning>
          {say("{amount} of {n} {n|day|days} is left out, because usage was not measured there: {days}.", {
            amount: money(total.excluded_amount, currency),
            n: missing.length,
            days: missing.length > 5 ? say("{days} and others", { days }) : days,
          })}
        </Warning>
      )}
      <Card
        title={
          total.unit_cost === null
            ? say("{title}: no usage was measured", { title })
            : say("{title}: {cost} per {unit}", { title, cost: money(total.unit_cost, currency), unit })
        }
        note={say("{amount} divided by {usage}, {n} {n|day|days}", {
          amount: money(total.amount, currency),
          usage: total.usage === null ? say("no usage") : `${grouped(total.usage)} ${unit}`,
          n: total.days,
        })}
      >
        <Table
          className="tall"
          label={say("Costs per {unit}", { unit })}
          heads={[
            titleOf(by),
            { name: say("Per {unit}", { unit }), end: true },
            { name: unit, end: true, note: say("measured") },
            { name: say("Days with usage"), end: true },
            { name: say("Amount"), end: true },
          ]}
        >
          {answer.items.map((item) => (
            <Row key={JSON.stringify(item.dimensions)} item={item} by={by} answer={answer} />
          ))}
        </Table>
        {more > 0 && <p className="note">{say("and {n} {n|other|others} with smaller amounts.", { n: more })}</p>}
        <p className="note">
          {say("The amount is every cost in this view, whatever the product. Without usage there is no unit cost.")}
        </p>
      </Card>
    </>
  );
}

function Row({ item, by, answer }: { item: UnitCosts["items"][number]; by: string; answer: UnitCosts }) {
  const here = useHere();
  const value = item.dimensions[by] ?? null;
  const { name } = label(by, value, value === null ? null : (answer.names[by]?.[value] ?? null));
  return (
    <tr>
      <th scope="row">
        {takes("/costs", filterKey(by)) ? (
          <a className="more" href={here.to(toggle({ ...here.view, extra: {} }, by, filterValue(by, value)), "costs")}>
            {name}
          </a>
        ) : (
          name
        )}
      </th>
      <td className="end">
        {item.unit_cost === null ? (
          <span className="quiet">{say("no usage")}</span>
        ) : (
          <Exact amount={item.unit_cost} currency={answer.currency} />
        )}
      </td>
      <td className="end num">{item.usage === null ? "–" : grouped(item.usage)}</td>
      <td className="end num">{say("{some} of {n}", { some: item.days_with_usage, n: item.days })}</td>
      <td className="end num">{money(item.amount, answer.currency)}</td>
    </tr>
  );
}
