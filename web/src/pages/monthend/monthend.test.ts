import { expect, test } from "vitest";
import type { Blocker, Month } from "../../api/shapes";
import { learned } from "./closed";
import { usualMonth } from "./index";
import { obstacles, willDo } from "./open";

function blocker(kind: string, date: string | null, can_be_accepted = true): Blocker {
  return { id: `${kind}:${date}`, kind, date, detail: `${date} has no bill.`, remedy: "Wait.", can_be_accepted };
}

const month = (period_id: string, state: Month["state"]) => ({ period_id, state }) as Month;

test("what is in the way is accepted by its kind, and only if all of it can be", () => {
  const found = obstacles([
    blocker("day-missing", "2026-10-01"),
    blocker("verify", "2026-10-02", false),
    blocker("day-missing", "2026-10-03"),
  ]);
  expect(found.map((each) => [each.kind, each.all.length, each.canBeAccepted])).toEqual([
    ["day-missing", 2, true],
    ["verify", 1, false],
  ]);
});

test("the button says what it will do", () => {
  const amount = "41203.11";
  const totals = { billed: amount, regular: amount, corrections: "0.00", adjustments: "0.00", posted: amount };
  const value = { value: "payments", name: null, number: "1", amount, regular: amount, rounded: amount };
  const values = [{ ...value, corrections: "0.00", adjustments: "0.00" }];
  const by = [{ by: "tag:team", values, rounded: amount, difference: "0.00" }];
  expect(willDo({ period_id: "2026-10", currency: "USD", totals, by })).toBe(
    "Close October 2026: $41,203.11, 1 statement",
  );
});

test("the month to begin with is the one to close next, else the last that is over", () => {
  const items = [month("2026-11", "accruing"), month("2026-10", "blocked"), month("2026-09", "ready")];
  expect(usualMonth({ items, next_to_close: "2026-09" })).toBe("2026-09");
  expect(usualMonth({ items, next_to_close: null })).toBe("2026-10");
  expect(usualMonth({ items: items.slice(0, 1), next_to_close: null })).toBe("2026-11");
  expect(usualMonth({ items: [], next_to_close: null })).toBeUndefined();
});

test("what was learned of a month is its corrections, by the month that they were posted to and by value", () => {
  const bucket = (posted_period: string, charge_class: string, charge_period: string, total_amount: string) => ({
    dimensions: { posted_period, charge_class, charge_period, "tag:team": "payments" },
    total_amount,
    time_bucket: "all",
    row_count: 1,
  });
  const buckets = [
    bucket("2026-10", "regular", "2026-10", "20.00"),
    bucket("2026-11", "correction", "2026-10", "1.50"),
    bucket("2026-11", "correction", "2026-09", "7.00"),
    bucket("2026-12", "correction", "2026-10", "-0.25"),
  ];
  expect(learned({ buckets } as unknown as Parameters<typeof learned>[0], "2026-10", "tag:team")).toEqual([
    { posted: "2026-11", value: "payments", amount: "1.50" },
    { posted: "2026-12", value: "payments", amount: "-0.25" },
  ]);
});
