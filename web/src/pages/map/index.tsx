import { useFlow, useTenant } from "../../api/questions";
import type { Flow, FlowNode } from "../../api/shapes";
import { useHere } from "../../app/router";
import { FlowChart } from "../../charts/flow";
import type { Link, Node, Tone } from "../../charts/ribbons";
import { useWidth } from "../../charts/width";
import { length } from "../../format/days";
import { change, money } from "../../format/money";
import { dimension, label } from "../../format/names";
import { ratio, read, type Units } from "../../money/money";
import { Amount, Card, Delta } from "../../ui/card";
import { sumsFile } from "../../ui/csv";
import { Scroller } from "../../ui/scroller";
import { Answered, Bone, Empty } from "../../ui/states";
import { Table } from "../../ui/table";
import { Toolbar } from "../../ui/toolbar";
import { resolve } from "../../url/period";
import { during, extra, toggle } from "../../url/view";
import { filterValue, leadingTag, maybe } from "../costs/facts";
import { DaySlider, dayOf } from "./slider";

const NOTABLE = 0.02;
/** Environment, resource and who: an estimate of how many there are together, for the size of a file. */
const MOST_PATHS = 1000;

/** Where the money comes from, and to whom it goes: environment, resource, and who. */
export function MapPage() {
  const here = useHere();
  const name = here.tenant ?? "";
  const tenant = useTenant(name);
  const tag = leadingTag(tenant.data);
  const ends = [...(tag ? [tag] : []), "identity_id", "product_type"];
  const end = ends.find((each) => each === here.view.extra.to) ?? ends[0] ?? "identity_id";
  const by = ["environment_id", "resource_id", end];
  const last = tenant.data?.last_date;
  const period = last ? resolve(here.view, last) : null;
  const day = period && dayOf(here.view.extra.day, period);
  const view = day ? during(here.view, day, day) : here.view;
  const query = useFlow(name, view, by, "6,9,10", tenant.data !== undefined || tenant.isError);
  const days = period && !day ? length(period.start, period.end) : 1;
  const file = sumsFile(name, view, by, { values: MOST_PATHS, days });
  return (
    <>
      <Toolbar file={file} />
      {period && <DaySlider period={period} day={day} />}
      <Answered query={query} skeleton={<Bone height={38} />}>
        {(flow) =>
          flow.nodes.length === 0 ? (
            <Empty title="No costs in this view" />
          ) : (
            <Card
              title="Where the money comes from, and to whom it goes"
              note={`height is the cost, colour what changed against the ${day ? "day" : "period"} before`}
              action={
                <nav className="segments" aria-label="Last column">
                  {ends.map((each) => (
                    <a
                      key={each}
                      href={here.to(extra(here.view, "to", each))}
                      data-replace=""
                      aria-current={each === end ? "true" : undefined}
                    >
                      {dimension(each)}
                    </a>
                  ))}
                </nav>
              }
            >
              <Drawn flow={flow} by={by} />
              <p className="legend">
                <span>
                  <i className="swatch tone-up" />▲ costs at least 2 % more
                </span>
                <span>
                  <i className="swatch tone-down" />▼ at least 2 % less
                </span>
                <span>
                  <i className="swatch k-nobody" />
                  about the same
                </span>
                <span>
                  <i className="swatch tone-new" />
                  new
                </span>
              </p>
              <AsTable flow={flow} />
            </Card>
          )
        }
      </Answered>
    </>
  );
}

function toneOf(amount: Units, previous: Units | null): Tone {
  const found = change(amount, previous);
  if (!found || previous === null) return "same";
  if (found.direction === "new") return "new";
  const part = ratio(found.amount, previous < 0n ? -previous : previous);
  return part === null || Math.abs(part) < NOTABLE ? "same" : part > 0 ? "up" : "down";
}

function nameOf(node: FlowNode): string {
  if (node.other) return `${node.other} ${node.other === 1 ? "other" : "others"}`;
  return label(node.by, node.value, node.name).name;
}

const MARK: Record<Tone, string> = { up: "▲", down: "▼", same: "", new: "" };

function Drawn({ flow, by }: { flow: Flow; by: readonly string[] }) {
  const here = useHere();
  const [frame, width] = useWidth<HTMLElement>(736, 0);
  const { currency } = flow;
  const nodes = flow.nodes.map((each): Node => {
    const [amount, previous] = [read(each.amount), maybe(each.previous)];
    const tone = toneOf(amount, previous);
    const moved = tone === "same" ? "" : ` ${MARK[tone]} ${change(amount, previous)?.text ?? ""}`;
    const closed =
      each.other !== null || (each.value === null && each.by !== "environment_id" && !each.by.startsWith("tag:"));
    return {
      column: each.column,
      name: nameOf(each),
      amount,
      note: `${money(amount, currency)}${moved}`,
      tone,
      href: closed ? null : here.to(toggle(here.view, each.by, filterValue(each.by, each.value))),
      title: `${nameOf(each)}: ${money(amount, currency)}${moved}`,
    };
  });
  const links = flow.links.map((each): Link => {
    const amount = read(each.amount);
    const title = `${nodes[each.source]?.name} → ${nodes[each.target]?.name}: ${money(amount, currency)}`;
    return { source: each.source, target: each.target, amount, tone: toneOf(amount, maybe(each.previous)), title };
  });
  return (
    <Scroller ref={frame} label="Map">
      {width > 0 && <FlowChart nodes={nodes} links={links} heads={by.map(dimension)} width={width} />}
    </Scroller>
  );
}

function AsTable({ flow }: { flow: Flow }) {
  const here = useHere();
  return (
    <details className="as-table">
      <summary className="more">The same as a table</summary>
      <Table
        label="Map as a table"
        heads={["Column", "Name", { name: "Change", end: true }, { name: "Amount", end: true }]}
      >
        {flow.nodes.map((each) => (
          <tr key={`${each.column} ${each.value} ${each.other}`}>
            <td className="quiet">{dimension(each.by)}</td>
            <th scope="row">
              {each.other || each.value === null ? (
                nameOf(each)
              ) : (
                <a className="more" href={here.to(toggle(here.view, each.by, each.value))}>
                  {nameOf(each)}
                </a>
              )}
            </th>
            <td className="end">
              <Delta amount={read(each.amount)} previous={maybe(each.previous)} currency={flow.currency} />
            </td>
            <td className="end">
              <Amount amount={each.amount} currency={flow.currency} />
            </td>
          </tr>
        ))}
      </Table>
    </details>
  );
}
