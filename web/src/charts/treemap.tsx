import { hierarchy, treemap, treemapSquarify } from "d3-hierarchy";
import { useEffect, useRef, useState } from "react";
import { money, percent } from "../format/money";
import { pixels, ratio, sum, type Units } from "../money/money";

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

interface Box {
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

/** Area is the cost. Text is shown where it fits, and said in full in any case; the table beside it has everything. */
export function Treemap({ groups, currency, whole }: { groups: readonly Group[]; currency: string; whole: Units }) {
  const frame = useRef<HTMLDivElement>(null);
  const [[width, height], setSize] = useState([0, 0]);
  useEffect(() => {
    const box = frame.current;
    if (!box) return;
    const observer = new ResizeObserver(
      ([entry]) => entry && setSize([entry.contentRect.width, entry.contentRect.height]),
    );
    observer.observe(box);
    return () => observer.disconnect();
  }, []);
  return (
    <div className="treemap" ref={frame} aria-hidden="true">
      {width > 0 &&
        layout(groups, width, height).map((box) => {
          const place = { left: box.x, top: box.y, width: box.width, height: box.height };
          const part = ratio(box.amount, whole);
          return (
            <a
              key={box.key}
              className={`${box.kind} ${box.colour}`}
              style={place}
              href={box.href}
              tabIndex={-1}
              title={`${box.name}: ${money(box.amount, currency)}, ${percent(part)}`}
            >
              {box.kind === "cluster" && box.width > 40 && (
                <span>
                  <b className="cut">{box.name}</b>
                  {box.width > 190 && <span className="num">{money(box.amount, currency)}</span>}
                </span>
              )}
              {box.kind === "topic" && box.width > 66 && box.height > 24 && <span className="cut">{box.name}</span>}
              {box.kind === "topic" && box.width > 66 && box.height > 42 && (
                <span className="num">
                  {money(box.amount, currency)}
                  {box.width > 130 && ` · ${percent(part)}`}
                </span>
              )}
            </a>
          );
        })}
    </div>
  );
}
