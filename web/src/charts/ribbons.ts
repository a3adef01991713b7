import type { ReactNode } from "preact/compat";
import { at, pixels, type Units } from "../money/money";

export interface Node {
  column: number;
  name: string;
  amount: Units;
  note: ReactNode;
  tone: Tone;
  href: string | null;
  title: string;
}

export interface Link {
  source: number;
  target: number;
  amount: Units;
  tone: Tone;
  title: string;
}

export type Tone = "up" | "down" | "same" | "new";

const GAP = 9;
const LEAST = 22;
const BOX = 0.23;

export interface Placed {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** Place nodes in columns and fill both sides of each with its ribbons. Nodes are at least as high as their name. */
export function layout(nodes: readonly Node[], links: readonly Link[], width: number, height: number) {
  const columns = Math.max(...nodes.map((each) => each.column)) + 1;
  const box = Math.round(width * BOX);
  const step = columns > 1 ? (width - box) / (columns - 1) : 0;
  const places: Placed[] = nodes.map(() => ({ x: 0, y: 0, width: box, height: 0 }));
  for (let column = 0; column < columns; column++) {
    const members = nodes.map((_, n) => n).filter((n) => nodes[n]?.column === column);
    const heights = share(
      members.map((n) => Math.max(0, pixels(at(nodes, n).amount))),
      height - GAP * (members.length - 1),
    );
    let y = 0;
    members.forEach((n, m) => {
      places[n] = { x: Math.round(step * column), y, width: box, height: heights[m] ?? 0 };
      y += (heights[m] ?? 0) + GAP;
    });
  }
  return { places, ribbons: ribbons(links, places) };
}

/** Heights in proportion, but none below the least: what the small ones need, the large ones give. */
function share(sizes: readonly number[], room: number): number[] {
  const small = new Set<number>();
  for (;;) {
    const left = room - small.size * LEAST;
    const total = sizes.reduce((all, size, n) => all + (small.has(n) ? 0 : size), 0) || 1;
    const heights = sizes.map((size, n) => (small.has(n) ? LEAST : (size / total) * left));
    const more = heights.findIndex((each, n) => !small.has(n) && each < LEAST);
    if (more < 0 || small.size === sizes.length) return heights;
    small.add(more);
  }
}

function ribbons(links: readonly Link[], places: readonly Placed[]): string[] {
  const sides = (end: "source" | "target", other: "source" | "target") => {
    const spans = new Map<Link, [number, number]>();
    for (const [n, list] of Map.groupBy(links, (each) => each[end])) {
      const place = places[n];
      if (!place) continue;
      const total = list.reduce((all, each) => all + Math.max(0, pixels(each.amount)), 0) || 1;
      let y = place.y;
      for (const each of [...list].sort((a, b) => (places[a[other]]?.y ?? 0) - (places[b[other]]?.y ?? 0))) {
        const size = (Math.max(0, pixels(each.amount)) / total) * place.height;
        spans.set(each, [y, y + size]);
        y += size;
      }
    }
    return spans;
  };
  const [from, to] = [sides("source", "target"), sides("target", "source")];
  return links.map((each) => {
    const [a, b] = [places[each.source], places[each.target]];
    const [[a0, a1], [b0, b1]] = [from.get(each) ?? [0, 0], to.get(each) ?? [0, 0]];
    if (!a || !b) return "";
    const [x0, x1] = [a.x + a.width, b.x];
    const middle = (x0 + x1) / 2;
    return `M${x0} ${a0}C${middle} ${a0} ${middle} ${b0} ${x1} ${b0}V${b1}C${middle} ${b1} ${middle} ${a1} ${x0} ${a1}Z`;
  });
}
