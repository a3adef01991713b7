import { useGraph } from "../../api/questions";
import type { GraphDiff, GraphDiffNode } from "../../api/shapes";
import { useHere } from "../../app/router";
import { FlowChart } from "../../charts/flow";
import type { Link, Node } from "../../charts/ribbons";
import { useWidth } from "../../charts/width";
import { change, money } from "../../format/money";
import { label, type } from "../../format/names";
import { Amount, Delta } from "../../ui/card";
import { Scroller } from "../../ui/scroller";
import { Answered, Bone, Empty } from "../../ui/states";
import { Table } from "../../ui/table";
import { extra, toggle, type View } from "../../url/view";
import { say } from "../../words/say";
import { MARK, MapCard, toneOf } from "./frame";
import { type Box, boxesOf } from "./tree";

interface Props {
  view: View;
  leaves: "identities" | "topics";
  ends: readonly string[];
  enabled: boolean;
}

/** What is in what: a part of the organisation, what it consists of, and what these consist of. */
export function GraphMap({ view, leaves, ends, enabled }: Props) {
  const here = useHere();
  const focus = here.view.extra.focus ?? "";
  const query = useGraph(here.tenant ?? "", view, focus, leaves, enabled);
  return (
    <>
      {focus && (
        <p className="tools">
          <a className="more" href={here.to(extra(here.view, "focus", null))}>
            {say("← The whole organisation")}
          </a>
        </p>
      )}
      <Answered answer={query} skeleton={<Bone height={38} />}>
        {(graph) =>
          graph.nodes[0]?.children === 0 && graph.nodes[0].kind === "organisation" ? (
            <Empty title={say("No costs in this view")} />
          ) : (
            <MapCard
              title={say("What the money is spent on, part by part")}
              ends={ends}
              end={leaves}
              note={noteOf(graph)}
            >
              <Path graph={graph} />
              <Drawn graph={graph} />
              <AsTable graph={graph} />
            </MapCard>
          )
        }
      </Answered>
    </>
  );
}

function noteOf(graph: GraphDiff): string {
  return graph.compared_start_date
    ? say("press a part to look into it; height is the cost, colour what changed against the other period")
    : say("press a part to look into it; height is the cost");
}

function partName(part: Pick<GraphDiffNode, "kind" | "value" | "name">): string {
  if (part.kind === "organisation") return say("The organisation");
  const by = { environment: "environment_id", resource: "resource_id", identity: "identity_id", topic: "topic" };
  return label(by[part.kind], part.value, part.name).name;
}

/** Where the focus lies; every part above it is a way back. */
function Path({ graph }: { graph: GraphDiff }) {
  const here = useHere();
  return (
    <nav className="crumbs" aria-label={say("Where this part lies")}>
      <ol>
        {graph.path.map((part, n) => (
          <li key={part.id}>
            {n === graph.path.length - 1 ? (
              <b aria-current="location">{partName(part)}</b>
            ) : (
              <a className="more" href={here.to(extra(here.view, "focus", part.id || null))}>
                {partName(part)}
              </a>
            )}
          </li>
        ))}
      </ol>
    </nav>
  );
}

function nameOf(box: Box): string {
  if (box.node) return partName(box.node);
  return box.others > 0 ? say("{n} {n|other|others}", { n: box.others }) : say("Not a part of these");
}

/** Where a box leads: into the part, or to the rows of one that has no parts. */
function useTo(): (node: GraphDiffNode) => string {
  const here = useHere();
  return (node) => {
    if (node.children > 0) return here.to(extra(here.view, "focus", node.id || null));
    if (node.kind === "topic") {
      const [cluster = "", topic = ""] = [node.filters.cluster_resource_id?.[0], node.filters.topic_name?.[0]];
      return here.to({ ...here.view, filters: [], extra: { tab: "topics", cluster, topic } }, "rows");
    }
    const { filters } = node;
    const pairs = Object.entries(filters).flatMap(([key, values]) => values.map((value) => [key, value] as const));
    const rest = here.view.filters.filter((each) => each.not || !(each.key in filters));
    const plain: View = { ...here.view, filters: rest, extra: {} };
    return here.to(
      pairs.reduce((found, [key, value]) => toggle(found, key, value), plain),
      "rows",
    );
  };
}

function before(graph: GraphDiff, amount: bigint): bigint | null {
  return graph.compared_start_date ? amount : null;
}

function Drawn({ graph }: { graph: GraphDiff }) {
  const to = useTo();
  const [frame, width] = useWidth<HTMLElement>(736, 0);
  const boxes = boxesOf(graph);
  const nodes = boxes.map((box): Node => {
    const previous = before(graph, box.before);
    const tone = toneOf(box.amount, previous);
    const moved = tone === "same" ? "" : ` ${MARK[tone]} ${change(box.amount, previous)?.text ?? ""}`;
    const note = `${money(box.amount, graph.currency)}${moved}${box.node?.state === "gone" ? ` ${say("gone [costs]")}` : ""}`;
    return {
      column: box.column,
      name: nameOf(box),
      amount: box.amount,
      note,
      tone,
      href: box.node && box.above !== null ? to(box.node) : null,
      title: `${nameOf(box)}: ${note}`,
    };
  });
  const links = boxes.flatMap((box, target): Link[] => {
    if (box.above === null) return [];
    const tone = toneOf(box.amount, before(graph, box.before));
    const title = `${nodes[box.above]?.name} → ${nodes[target]?.title}`;
    return [{ source: box.above, target, amount: box.amount, tone, title }];
  });
  const columns = Math.max(...boxes.map((each) => each.column)) + 1;
  const heads = [say("This part"), say("consists of"), say("and these of")].slice(0, columns);
  return (
    <Scroller ref={frame} label={say("Map")}>
      {width > 0 && <FlowChart nodes={nodes} links={links} heads={heads} width={width} />}
    </Scroller>
  );
}

function AsTable({ graph }: { graph: GraphDiff }) {
  const to = useTo();
  const boxes = boxesOf(graph);
  return (
    <details className="as-table">
      <summary className="more">{say("The same as a table")}</summary>
      <Table
        label={say("Map as a table")}
        heads={[
          say("Part of"),
          say("Name"),
          say("What"),
          { name: say("Change"), end: true },
          { name: say("Amount"), end: true },
        ]}
      >
        {boxes.map((box) => {
          const above = box.above === null ? null : boxes[box.above];
          return (
            <tr key={box.key}>
              <td className="quiet">{above ? nameOf(above) : "–"}</td>
              <th scope="row">
                {box.node && above ? (
                  <a className="more" href={to(box.node)}>
                    {nameOf(box)}
                    <span className="sr">{box.node.children > 0 ? say(": look into it") : say(": its rows")}</span>
                  </a>
                ) : (
                  nameOf(box)
                )}
              </th>
              <td className="quiet">{box.node ? type(box.node.type ?? box.node.kind) : ""}</td>
              <td className="end">
                <Delta amount={box.amount} previous={before(graph, box.before)} currency={graph.currency} />
              </td>
              <td className="end">
                <Amount amount={box.amount} currency={graph.currency} />
              </td>
            </tr>
          );
        })}
      </Table>
    </details>
  );
}
