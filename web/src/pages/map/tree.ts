import type { GraphDiff, GraphDiffNode } from "../../api/shapes";
import { larger, read, sum, type Units } from "../../money/money";

/** A box of the map: a node of the graph, or what is not named below one. */
export interface Box {
  key: string;
  /** The place of the box above it in the list; null for the first one. */
  above: number | null;
  column: number;
  /** The node; null for others together. */
  node: GraphDiffNode | null;
  /** How many others; zero for what belongs to the node above and to nothing in it. */
  others: number;
  amount: Units;
  before: Units;
}

/** At most so many boxes stand in one column below each other, beside those of others. */
const MOST = 14;

/** The boxes of a graph, column by column: each column sums to what stands above it, in both periods. */
export function boxesOf(graph: GraphDiff): Box[] {
  const [focus] = graph.nodes;
  if (!focus) return [];
  const boxes: Box[] = [boxOf(focus, null, 0)];
  let level = [0];
  for (let column = 1; level.length > 0; column++) {
    const following: number[] = [];
    for (const above of level) {
      const node = boxes[above]?.node;
      if (!node) continue;
      const children = graph.nodes.filter((each) => each.parent === node.id);
      if (children.length === 0) continue;
      const room = Math.max(1, Math.floor(MOST / level.length));
      const [named, folded] = [children.slice(0, room), children.slice(room)];
      for (const child of named) {
        following.push(boxes.length);
        boxes.push(boxOf(child, above, column));
      }
      boxes.push(...restOf(node, folded, above, column));
    }
    level = following;
  }
  return boxes;
}

function boxOf(node: GraphDiffNode, above: number | null, column: number): Box {
  return { key: node.id, above, column, node, others: 0, amount: read(node.after), before: read(node.before) };
}

/** What a node has beside the boxes that are named: others, and what is its own. */
function restOf(node: GraphDiffNode, folded: readonly GraphDiffNode[], above: number, column: number): Box[] {
  const rest: Box[] = [];
  const count = folded.length + (node.other?.count ?? 0);
  const parts = [...folded, ...(node.other ? [node.other] : [])];
  const beside = { above, column, node: null };
  if (count > 0)
    rest.push({
      ...beside,
      key: `${node.id} others`,
      others: count,
      amount: sum(parts.map((each) => read(each.after))),
      before: sum(parts.map((each) => read(each.before))),
    });
  const own = { amount: read(node.own.after), before: read(node.own.before) };
  if (own.amount !== 0n || own.before !== 0n) rest.push({ ...beside, ...own, key: `${node.id} own`, others: 0 });
  return rest.sort((a, b) => larger(a.amount, b.amount));
}
