import { expect, test } from "vitest";
import type { CategoryDocument, Rule } from "./document";
import { notesOf } from "./effect";

const rule = (id: string): Rule => ({ id, match: { identity: [id] }, assign: "a" });
const BASE: CategoryDocument = { rules: [rule("one"), rule("two"), rule("three")] };
const applied = (index: number, id: string) => ({ index, id, reason: null });

/** What the service finds of a document with another rule in front. */
const FOUND = {
  never_matching: [
    { rule: applied(0, "new"), why: "nobody has that id" },
    { rule: applied(2, "two"), why: "nobody has that id" },
  ],
  shadowed: [
    { rule: applied(1, "one"), by: [applied(0, "new")] },
    { rule: applied(3, "three"), by: [applied(2, "two")] },
  ],
  overlaps: [
    { winner: applied(0, "new"), loser: applied(2, "two"), subjects: 2 },
    { winner: applied(2, "two"), loser: applied(3, "three"), subjects: 3 },
  ],
  unknown_values: [{ rule: applied(3, "three"), value: "x" }],
};

test("of all rules to look at, those are told that the edit touches", () => {
  expect(notesOf(FOUND, BASE, { rules: [rule("new"), ...(BASE.rules ?? [])] })).toEqual([
    "new matches nothing: nobody has that id",
    "one does nothing: new decide before it",
    "new wins over two for 2 combinations that both match",
  ]);
});

test("other values concern every rule", () => {
  const values = { a: {} };
  expect(notesOf(FOUND, BASE, { ...BASE, values })).toEqual(["three makes the value x, which is not registered"]);
});
