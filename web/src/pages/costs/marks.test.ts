import { expect, test } from "vitest";
import type { Anomaly } from "../../api/shapes";
import { type Mark, marksAt, restatedMarks, storyMarks } from "./marks";

const story = (identity: string, ...days: string[]) =>
  ({
    identity_id: identity,
    category: null,
    value: null,
    product_category: "KAFKA",
    goes_with: null,
    belongs_to: { team: "payments" },
    sentence: `${identity} was charged more`,
    mark: null,
    days: days.map((date) => ({ date, actual: 2, expected: 1, scales: 5 })),
  }) as unknown as Anomaly;
const filter = (key: string, value: string, not = false) => ({ key, value, not });
const ITEMS = [story("a", "2026-11-14", "2026-11-15"), story("b", "2026-11-15")];

const day = (date: string) => ({ start: date, end: date });
const daysOf = (marks: readonly Mark[]) => marks.map(({ start }) => start);

test("each place of a chart has what is to be known of its days", () => {
  const note: Mark = { kind: "note", start: "2026-11-10", end: "2026-11-14", text: "Load test" };
  const placed = marksAt([...storyMarks(ITEMS, []), note], ["2026-11-13", "2026-11-14", "2026-11-15"].map(day));
  expect(placed.map((each) => each.map(({ text }) => text))).toEqual([
    ["Load test"],
    ["a was charged more", "Load test"],
    ["a was charged more", "b was charged more"],
  ]);
});

test("a restated day says when, why, and by how much where that is known", () => {
  const restated = { date: "2026-11-14", calculated_at: "2026-11-20T09:30:00Z", causes: ["bill_changed", "manual"] };
  const texts = (...deltas: (string | null)[]) =>
    restatedMarks({ items: deltas.map((delta) => ({ ...restated, delta })) as never, currency: "USD" }).map(
      ({ text }) => text,
    );
  expect(texts("-12.345", "0.00", null)).toEqual([
    "Restated 20 Nov 2026, 09:30 UTC by −$12.35: The provider changed the bill, Recalculated by hand",
    "Restated 20 Nov 2026, 09:30 UTC: The provider changed the bill, Recalculated by hand",
    "Restated 20 Nov 2026, 09:30 UTC: The provider changed the bill, Recalculated by hand",
  ]);
});

test("filters of a view leave what they name", () => {
  expect(daysOf(storyMarks(ITEMS, [filter("identity_id", "b")]))).toEqual(["2026-11-15"]);
  expect(daysOf(storyMarks(ITEMS, [filter("identity_id", "a", true)]))).toEqual(["2026-11-15"]);
  expect(storyMarks(ITEMS, [filter("product_category", "FLINK")]).length).toBe(0);
  expect(storyMarks(ITEMS, [filter("tag:team", "x")]).length, "nobody knows").toBe(0);
});

test("values of a cost category are marked like identities, and nothing twice", () => {
  const team = { ...ITEMS[0], identity_id: null, category: "team", value: "payments" } as unknown as Anomaly;
  expect(storyMarks([team], [filter("category:team", "payments")]).length).toBe(2);
  expect(storyMarks([team], [filter("category:team", "search")]).length).toBe(0);
  expect(storyMarks([team], [filter("identity_id", "a")]).length).toBe(0);
  expect(storyMarks(ITEMS, [filter("category:team", "payments")]).length, "of its members").toBe(3);
  expect(storyMarks(ITEMS, [filter("category:site", "north")]).length).toBe(0);
  expect(storyMarks([{ ...team, goes_with: "another" }], []).length).toBe(0);
});

test("what somebody has put aside is not marked, what is confirmed is", () => {
  const marked = (status: string) => [{ ...ITEMS[1], mark: { status } } as unknown as Anomaly];
  expect(storyMarks(marked("planned"), []).length).toBe(0);
  expect(storyMarks(marked("confirmed"), []).length).toBe(1);
});
