import { expect, test } from "vitest";
import type { Anomaly } from "../../api/shapes";
import { marksOf } from "./marks";

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

test("each day has what stands out on it", () => {
  const marks = marksOf(ITEMS, []);
  expect([...marks.keys()]).toEqual(["2026-11-14", "2026-11-15"]);
  expect(marks.get("2026-11-15")).toEqual(["a was charged more", "b was charged more"]);
});

test("filters of a view leave what they name", () => {
  expect([...marksOf(ITEMS, [filter("identity_id", "b")]).keys()]).toEqual(["2026-11-15"]);
  expect([...marksOf(ITEMS, [filter("identity_id", "a", true)]).keys()]).toEqual(["2026-11-15"]);
  expect(marksOf(ITEMS, [filter("product_category", "FLINK")]).size).toBe(0);
  expect(marksOf(ITEMS, [filter("tag:team", "x")]).size, "nobody knows").toBe(0);
});

test("values of a cost category are marked like identities, and nothing twice", () => {
  const team = { ...ITEMS[0], identity_id: null, category: "team", value: "payments" } as unknown as Anomaly;
  expect(marksOf([team], [filter("category:team", "payments")]).size).toBe(2);
  expect(marksOf([team], [filter("category:team", "search")]).size).toBe(0);
  expect(marksOf([team], [filter("identity_id", "a")]).size).toBe(0);
  expect(marksOf(ITEMS, [filter("category:team", "payments")]).size, "of its members").toBe(2);
  expect(marksOf(ITEMS, [filter("category:site", "north")]).size).toBe(0);
  expect(marksOf([{ ...team, goes_with: "another" }], []).size).toBe(0);
});

test("what somebody has put aside is not marked, what is confirmed is", () => {
  const marked = (status: string) => [{ ...ITEMS[1], mark: { status } } as unknown as Anomaly];
  expect(marksOf(marked("planned"), []).size).toBe(0);
  expect(marksOf(marked("confirmed"), []).size).toBe(1);
});
