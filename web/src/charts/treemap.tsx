import { hierarchy, treemap, treemapSquarify } from "d3-hierarchy";
import { useMemo } from "preact/compat";
import { money, percent } from "../format/money";
import { pixels, ratio, sum, type Units } from "../money/money";
import { type Direction, useRoving } from "../ui/roving";
import { say } from "../words/say";
import { useSize } from "./width";

export interface Leaf {
  key: string;
  name: string;
  amount: Units;
  href: string;
}

export interface Group {
  key: string;
  name: string;
  colour: string;
  href: string;
  leaves: readonly Leaf[];
}

export interface Box {
  key: string;
  name: string;
  href: string;
  colour: string;
  amount: Units;
  kind: "cluster" | "topic";
  x: number;
  y: number;
  width: number;
  height: number;
}

const HEAD = 22;

/** Lay groups and their leaves out in a rectangle; areas are in proportion to amounts above zero. */
export function layout(groups: readonly Group[], width: number, height: number): Box[] {
  type Node = { group?: Group; leaf?: Leaf; children?: Node[] };
  const data: Node = {
    children: groups.map((group) => ({ group, children: group.leaves.map((leaf) => ({ group, leaf })) })),
  };
  const root = hierarchy(data, (node) => node.children ?? null)
    .sum((node) => Math.max(0, node.leaf ? pixels(node.leaf.amount) : 0))
    .sort((a, b) => (b.value ?? 0) - (a.value ?? 0));
  const placed = treemap<Node>()
    .size([width, height])
    .tile(treemapSquarify.ratio(1.3))
    .round(true)
    .paddingInner(2)
    .paddingLeft((node) => (node.depth ? 2 : 0))
    .paddingRight((node) => (node.depth ? 2 : 0))
    .paddingBottom((node) => (node.depth ? 2 : 0))
    .paddingTop((node) => (node.depth ? HEAD : 0))(root);
  return placed.descendants().flatMap((node): Box[] => {
    const { group, leaf } = node.data;
    if (!group || !node.value) return [];
    const of = leaf ?? group;
    const amount = leaf ? leaf.amount : sum(group.leaves.map((each) => each.amount));
    const place = { x: node.x0, y: node.y0, width: node.x1 - node.x0, height: node.y1 - node.y0 };
    return [
      {
        key: `${group.key} ${leaf?.key ?? ""}`,
        name: of.name,
        href: of.href,
        colour: group.colour,
        amount,
        kind: leaf ? "topic" : "cluster",
        ...place,
      },
    ];
  });
}

/** The box that lies next in a direction: the nearest of those beyond the middle of this one. */
export function neighbour(boxes: readonly Box[], from: number, direction: Direction): number {
  const start = boxes[from];
  if (!start || direction === "first") return boxes.findIndex((each) => each.kind === start?.kind);
  if (direction === "last") return boxes.length - 1;
  const across = direction === "left" || direction === "right";
  const sign = direction === "left" || direction === "up" ? -1 : 1;
  const middle = (box: Box) => [box.x + box.width / 2, box.y + box.height / 2] as const;
  const [x, y] = middle(start);
  let [best, least] = [from, Number.POSITIVE_INFINITY];
  boxes.forEach((box, n) => {
    const [dx, dy] = [middle(box)[0] - x, middle(box)[1] - y];
    const [along, aside] = across ? [dx * sign, dy] : [dy * sign, dx];
    // What lies aside is further away than what lies ahead.
    const distance = along + 2 * Math.abs(aside);
    if (n !== from && box.kind === start.kind && along > 0 && distance < least) [best, least] = [n, distance];
  });
  return best;
}

/** Area is the cost. Text is shown where it fits, and said in full in any case; arrow keys walk. */
export function Treemap({ groups, currency, whole }: { groups: readonly Group[]; currency: string; whole: Units }) {
  const [frame, width, height] = useSize<HTMLElement>();
  const boxes = useMemo(() => (width > 0 ? layout(groups, width, height) : []), [groups, width, height]);
  const first = boxes.findIndex((each) => each.kind === "topic");
  const { current, onKeyDown } = useRoving(frame, boxes.length, first, (from, direction) =>
    neighbour(boxes, from, direction),
  );
  return (
    <section
      className="treemap"
      ref={frame}
      aria-label={say("Topics by their cost; arrow keys walk")}
      onKeyDown={onKeyDown}
    >
      {boxes.map((box, n) => (
        <a
          key={box.key}
          className={`${box.kind} ${box.colour}`}
          style={{ left: box.x, top: box.y, width: box.width, height: box.height }}
          href={box.href}
          data-part={n}
          tabIndex={n === current ? 0 : -1}
          title={`${box.name}: ${money(box.amount, currency)}, ${percent(ratio(box.amount, whole))}`}
        >
          <Text box={box} amount={money(box.amount, currency)} part={percent(ratio(box.amount, whole))} />
        </a>
      ))}
    </section>
  );
}

/** What fits into a box is seen; the rest is only heard. */
function Text({ box, amount, part }: { box: Box; amount: string; part: string }) {
  if (box.kind === "cluster")
    return (
      <span className={box.width > 40 ? "" : "sr"}>
        <b className="cut">{box.name}</b>
        <span className={box.width > 190 ? "num" : "sr"}>{amount}</span>
      </span>
    );
  const [wide, high] = [box.width > 66, box.height > 42];
  return (
    <>
      <span className={wide && box.height > 24 ? "cut" : "sr"}>{box.name}</span>
      <span className={wide && high ? "num" : "sr"}>
        {amount}
        <span className={box.width > 130 ? "" : "sr"}> · {part}</span>
      </span>
    </>
  );
}
