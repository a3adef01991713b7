import { useFlow } from "../../api/questions";
import type { Flow, FlowNode } from "../../api/shapes";
import { useHere } from "../../app/router";
import { FlowChart } from "../../charts/flow";
import type { Link, Node } from "../../charts/ribbons";
import { useWidth } from "../../charts/width";
import { change, money } from "../../format/money";
import { dimension, label } from "../../format/names";
import { read } from "../../money/money";
import { Amount, Delta } from "../../ui/card";
import { Scroller } from "../../ui/scroller";
import { Answered, Bone, Empty } from "../../ui/states";
import { Table } from "../../ui/table";
import { toggle, type View } from "../../url/view";
import { say } from "../../words/say";
import { filterValue, maybe } from "../costs/facts";
import { MARK, MapCard, toneOf } from "./frame";

interface Props {
  view: View;
  by: readonly string[];
  ends: readonly string[];
  enabled: boolean;
}

/** Where the money comes from, and to whom it goes: environment, resource, and a team or a product. */
export function FlowMap({ view, by, ends, enabled }: Props) {
  const name = useHere().tenant ?? "";
  const query = useFlow(name, view, by, "6,9,10", enabled);
  return (
    <Answered answer={query} skeleton={<Bone height={38} />}>
      {(flow) =>
        flow.nodes.length === 0 ? (
          <Empty title={say("No costs in this view")} />
        ) : (
          <MapCard
            title={say("Where the money comes from, and to whom it goes")}
            note={say("height is the cost, colour what changed against the other period")}
            ends={ends}
            end={by.at(-1) ?? ""}
          >
            <Drawn flow={flow} />
            <AsTable flow={flow} />
          </MapCard>
        )
      }
    </Answered>
  );
}

function nameOf(node: FlowNode): string {
  if (node.other) return say("{n} {n|other|others}", { n: node.other });
  return label(node.by, node.value, node.name).name;
}

function Drawn({ flow }: { flow: Flow }) {
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
    <Scroller ref={frame} label={say("Map")}>
      {width > 0 && <FlowChart nodes={nodes} links={links} heads={flow.by.map(dimension)} width={width} />}
    </Scroller>
  );
}

function AsTable({ flow }: { flow: Flow }) {
  const here = useHere();
  return (
    <details className="as-table">
      <summary className="more">{say("The same as a table")}</summary>
      <Table
        label={say("Map as a table")}
        heads={[say("Column"), say("Name"), { name: say("Change"), end: true }, { name: say("Amount"), end: true }]}
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
