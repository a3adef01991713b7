import { Suspense, useState } from "preact/compat";
import type { Breakdown, Costs } from "../../api/shapes";
import { type Here, useHere } from "../../app/router";
import { type Moved, Movers } from "../../charts/movers";
import { RankedList } from "../../charts/ranked";
import { signed } from "../../format/money";
import { amid, dimension, label, reason } from "../../format/names";
import { read } from "../../money/money";
import { Amount, Card } from "../../ui/card";
import { type File, sumsFile, topicsFile } from "../../ui/csv";
import { Awaited, part } from "../../ui/part";
import { Table } from "../../ui/table";
import { isTable } from "../../url/tables";
import { type readView, toggle } from "../../url/view";
import { say } from "../../words/say";
import { comparison, filterValue, keyOf, maybe, ranked, valuesOf } from "./facts";

const MOST = 5;
const WhyChanged = part(() => import("./changes").then((all) => all.WhyChanged));

export function WhatChanged({ costs, found }: { costs: Costs; found: Breakdown }) {
  const here = useHere();
  const { comparable, why } = comparison(costs);
  const [explained, setExplained] = useState(false);
  const movers = found.movers
    .flatMap(({ previous, ...each }) => (previous === null ? [] : [{ ...each, previous }]))
    .slice(0, 8);
  const items = movers.map(
    (each): Moved => ({
      key: keyOf(each.value),
      name: label(found.by, each.value, each.name).name,
      difference: read(each.amount) - read(each.previous),
      href: here.to(toggle(here.view, found.by, filterValue(found.by, each.value))),
    }),
  );
  return (
    <Card
      title={say("What changed")}
      note={say("by {dimension}", { dimension: amid(dimension(found.by)) })}
      chart="changed"
      file={breakdownFile(here, costs, found)}
      action={
        costs.compared_with && (
          <button type="button" className="more" onClick={() => setExplained(true)}>
            {say("why")}
            <span className="sr">{say(" did it change?")}</span>
          </button>
        )
      }
    >
      {explained && (
        <Suspense fallback={<Awaited />}>
          <WhyChanged found={found} onClose={() => setExplained(false)} />
        </Suspense>
      )}
      {comparable && items.length > 0 ? (
        isTable(here.view, "changed") ? (
          <ChangesTable by={found.by} movers={movers} currency={costs.currency} />
        ) : (
          <Movers items={items} currency={costs.currency} />
        )
      ) : (
        <p className="note">
          {comparable
            ? say("Nothing changed.")
            : why
              ? say("Not shown: {why}.", { why })
              : say("Choose something to compare with.")}
        </p>
      )}
    </Card>
  );
}

type Mover = Breakdown["movers"][number] & { previous: string };

function ChangesTable({ by, movers, currency }: { by: string; movers: readonly Mover[]; currency: string }) {
  return (
    <Table
      label={say("What changed as a table")}
      heads={[
        dimension(by),
        { name: say("Before"), end: true },
        { name: say("Now"), end: true },
        { name: say("Change"), end: true },
      ]}
    >
      {movers.map((each) => (
        <tr key={keyOf(each.value)}>
          <th scope="row">{label(by, each.value, each.name).name}</th>
          <td className="end">
            <Amount amount={each.previous} currency={currency} />
          </td>
          <td className="end">
            <Amount amount={each.amount} currency={currency} />
          </td>
          <td className="end num">{signed(read(each.amount) - read(each.previous), currency)}</td>
        </tr>
      ))}
    </Table>
  );
}

/** The values of a breakdown over the days of the view, as a file. */
export function breakdownFile({ tenant, view }: Pick<Here, "tenant" | "view">, costs: Costs, found: Breakdown): File {
  return sumsFile(tenant ?? "", view, [found.by], { values: valuesOf(found), days: costs.times.length });
}

export function BreakdownCard({ costs, found }: { costs: Costs; found: Breakdown }) {
  const here = useHere();
  const items = ranked(found, MOST, { ...here, colour: (_, index) => (index < 0 ? "k-others" : "k-bar") });
  return (
    <Card
      title={dimension(found.by)}
      file={breakdownFile(here, costs, found)}
      action={
        <a className="more" href={here.to({ ...here.view, by: found.by })} data-replace="">
          {say("over time")}
          <span className="sr">: {dimension(found.by)}</span>
        </a>
      }
    >
      <RankedList
        items={items}
        whole={read(costs.total.amount)}
        currency={costs.currency}
        comparable={comparison(costs).comparable}
      />
    </Card>
  );
}

export function TopicsCard({ costs }: { costs: Costs }) {
  const here = useHere();
  const { topics, currency } = costs;
  if (!topics)
    return (
      <Card title={say("Topics")}>
        <p className="note">
          {say("Costs of topics are not attributed for this tenant; its configuration can switch it on.")}
        </p>
      </Card>
    );
  const whole = read(topics.total);
  const items = topics.items.slice(0, MOST).map((each) => ({
    key: `${each.cluster_resource_id} ${each.topic_name}`,
    name: each.topic_name,
    id: each.cluster_name ?? each.cluster_resource_id,
    title: `${each.topic_name} · ${each.cluster_resource_id}`,
    colour: "k-bar",
    amount: read(each.amount),
    previous: maybe(each.previous),
    href: here.to({ ...here.view, extra: { cluster: each.cluster_resource_id } }, "topics"),
    not: null,
    picked: false,
  }));
  return (
    <Card
      title={say("Topics")}
      file={topicsFile(here.tenant ?? "", here.view)}
      action={
        <a className="more" href={here.to({ ...here.view, extra: {} }, "topics")}>
          {say("all [of a list]")}
          <span className="sr">{say(" topics")}</span>
        </a>
      }
    >
      <RankedList items={items} whole={whole} currency={currency} comparable={comparison(costs).comparable} />
      <p className="note foot-note">
        {say("of {amount} that topics of clusters share", { amount: <Amount amount={whole} currency={currency} /> })}
        {here.view.filters.length > 0 && say("; topics know no identities, so not every filter narrows them")}
      </p>
    </Card>
  );
}

export function IssuesCard({ costs }: { costs: Costs }) {
  const here = useHere();
  const { issues } = costs;
  if (!issues) return null;
  return (
    <Card
      title={say("Not as the policy intends")}
      file={sumsFile(here.tenant ?? "", here.view, ["allocation_detail", "resource_id"], {
        values: issues.reduce((all, each) => all + each.resources, 0),
        days: costs.times.length,
      })}
      action={
        <a className="more" href={here.to({ ...here.view, extra: {} }, "unowned")}>
          {say("all [of a list]")}
          <span className="sr">{say(" that have no owner")}</span>
        </a>
      }
    >
      {issues.length === 0 && <p className="note">{say("Everything was allocated as its policy intends.")}</p>}
      <ul className="issues">
        {issues.slice(0, 6).map((each) => (
          <li key={`${each.reason} ${each.unallocated}`}>
            <a href={here.to(rowsOf(here.view, each.reason, each.unallocated), "rows")}>
              <span className={`dot ${each.unallocated ? "" : "ring"}`} aria-hidden="true" />
              <b className="name">{reason(each.reason)}</b>
              <Amount amount={each.amount} currency={costs.currency} />
              <span className="note">
                {each.unallocated ? say("no owner") : say("split by the next way of the policy")} ·{" "}
                {say("{n} {n|row|rows}", { n: each.rows })}
              </span>
            </a>
          </li>
        ))}
      </ul>
    </Card>
  );
}

function rowsOf(view: ReturnType<typeof readView>, detail: string, unallocated: boolean) {
  const narrowed = toggle({ ...view, extra: {} }, "allocation_detail", detail);
  return toggle(narrowed, "identity_id", "UNALLOCATED", !unallocated);
}
