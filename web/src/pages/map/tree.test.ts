import fc from "fast-check";
import { expect, test } from "vitest";
import type { GraphDiff, GraphDiffNode } from "../../api/shapes";
import { sum, type Units, write } from "../../money/money";
import { boxesOf } from "./tree";

interface Part {
  own: bigint;
  hidden: bigint;
  children: Part[];
}

const units = fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n });

/** Parts of so many levels. */
function parts(levels: number): fc.Arbitrary<Part> {
  const children = levels === 0 ? fc.constant<Part[]>([]) : fc.array(parts(levels - 1), { maxLength: 12 });
  return fc.record({ own: units, hidden: units, children });
}

function costOf({ own, hidden, children }: Part): Units {
  return own + hidden + sum(children.map(costOf));
}

function both(amount: Units) {
  return { before: write(amount * 2n), after: write(amount), delta: write(-amount) };
}

/** The nodes of a part, as the service lists them. */
function listed(part: Part, id: string, parent: string | null, depth: number): GraphDiffNode[] {
  const named = depth > 0 ? part.children : [];
  const hidden = part.hidden + sum(part.children.slice(named.length).map(costOf));
  const children = part.children.length + 1;
  const node: GraphDiffNode = {
    ...{ id, parent, children, kind: "resource", value: id, name: null, type: null, rows: "chargebacks", filters: {} },
    ...both(costOf(part)),
    own: both(part.own),
    state: "changed",
    other: { count: children - named.length, ...both(hidden) },
  };
  return [node, ...named.flatMap((each, n) => listed(each, `${id}/${n}`, id, depth - 1))];
}

test("what stands beside a box sums to it, in both periods, however many parts are folded", () => {
  fc.assert(
    fc.property(parts(3), (whole) => {
      const boxes = boxesOf({ nodes: listed(whole, "x", null, 2) } as GraphDiff);
      for (const [n, box] of boxes.entries()) {
        const beside = boxes.filter((each) => each.above === n);
        if (beside.length === 0) continue;
        expect(sum(beside.map((each) => each.amount))).toBe(box.amount);
        expect(sum(beside.map((each) => each.before))).toBe(box.before);
        expect(beside.every((each) => each.column === box.column + 1)).toBe(true);
      }
      expect(boxes[0]?.amount).toBe(costOf(whole));
      expect(new Set(boxes.map((each) => each.key)).size).toBe(boxes.length);
    }),
    { numRuns: 500 },
  );
});

test("nothing is nothing", () => {
  expect(boxesOf({ nodes: [] as GraphDiffNode[] } as GraphDiff)).toEqual([]);
});
