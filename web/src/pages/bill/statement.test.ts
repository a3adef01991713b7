import fc from "fast-check";
import { expect, test } from "vitest";
import type { Aggregate, Budget } from "../../api/shapes";
import { read, sum, write } from "../../money/money";
import { budgetsOf } from "./budgets";
import { statement } from "./statement";

const MONTHS = ["2026-10-01", "2026-11-01"];
const units = fc.bigInt({ min: -(10n ** 20n), max: 10n ** 20n });
const bucket = fc.record({
  team: fc.constantFrom("payments", "search", "UNTAGGED", null),
  product: fc.constantFrom("KAFKA_BASE", "SUPPORT"),
  month: fc.constantFrom(...MONTHS),
  amount: units,
});

function answer(buckets: { team: string | null; product: string; month: string; amount: bigint }[]): Aggregate {
  return {
    buckets: buckets.map((each) => ({
      dimensions: { "tag:team": each.team, product_type: each.product },
      time_bucket: each.month,
      total_amount: write(each.amount),
      usage_amount: write(each.amount),
      shared_amount: "0.00",
      row_count: 1,
    })),
    currency: "USD",
    total_amount: write(sum(buckets.map((each) => each.amount))),
    usage_amount: write(sum(buckets.map((each) => each.amount))),
    shared_amount: "0.00",
    total_rows: buckets.length,
  };
}

test("lines, parts and months each add up to the service's total, to the last digit", () => {
  fc.assert(
    fc.property(fc.array(bucket, { maxLength: 40 }), (buckets) => {
      const asked = answer(buckets);
      const found = statement(asked, ["tag:team", "product_type"], MONTHS);
      expect(found.total).toBe(read(asked.total_amount));
      expect(found.isWhole).toBe(true);
      expect(sum(found.amounts)).toBe(found.total);
      for (const line of found.lines) {
        expect(sum(line.amounts)).toBe(line.total);
        expect(sum(line.parts.map((each) => each.total))).toBe(line.total);
      }
      expect(new Set(found.lines.map((each) => each.value)).size).toBe(found.lines.length);
    }),
  );
});

test("the largest comes first, and what has no owner last", () => {
  const [october = ""] = MONTHS;
  const of = (team: string | null, amount: bigint) => ({ team, product: "SUPPORT", month: october, amount });
  const found = statement(answer([of("UNTAGGED", 9n), of("search", 1n), of("payments", 5n)]), ["tag:team"], MONTHS);
  expect(found.lines.map((each) => each.value)).toEqual(["payments", "search", "UNTAGGED"]);
  expect(found.lines[0]?.parts).toEqual([]);
});

test("sums that the service left out are noticed", () => {
  const asked = { ...answer([]), total_amount: "1.00" };
  expect(statement(asked, ["tag:team"], MONTHS).isWhole).toBe(false);
});

test("a budget belongs to a line if it is about its value and nothing else", () => {
  const budget = (scope: Record<string, string[]>, amount: string | null = "10.00") =>
    ({ scope, status: { budget: amount } }) as unknown as Budget;
  const found = budgetsOf(
    [
      budget({ "tag:team": ["payments"] }),
      budget({ "tag:team": ["search", "orders"] }),
      budget({ "tag:team": ["billing"], product_category: ["KAFKA"] }),
      budget({ "tag:team": ["risk"] }, null),
      budget({}),
    ],
    "tag:team",
  );
  expect([...found.keys()]).toEqual(["payments"]);
});
