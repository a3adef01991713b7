import { expect, test } from "vitest";
import { read } from "../../money/money";
import { limitOf } from "./limit";

const status = { currency: "USD" } as Parameters<typeof limitOf>[0][number]["status"];
const budget = (scope: Record<string, string[]>, monthly: string | null, amounts: Record<string, string> = {}) => ({
  name: "Kafka",
  scope,
  monthly,
  amounts,
  status,
});
const filter = (key: string, value: string, not = false) => ({ key, value, not });
const DAYS = ["2026-10-31", "2026-11-01"];

test("a day has an equal part of its month's budget", () => {
  const found = limitOf([budget({}, "3000", { "2026-10": "310" })], [], DAYS, "USD");
  expect(found).toEqual({ name: "Kafka", amounts: [read("10"), read("100")] });
  expect(limitOf([budget({}, null, { "2026-10": "310" })], [], DAYS, "USD")?.amounts).toEqual([read("10"), null]);
});

test("only a budget of just these costs is their budget", () => {
  const kafka = budget({ product_category: ["KAFKA", "FLINK"] }, "3000");
  const both = [filter("product_category", "FLINK"), filter("product_category", "KAFKA")];
  expect(limitOf([kafka], both, DAYS, "USD")).not.toBeNull();
  expect(limitOf([kafka], both.slice(0, 1), DAYS, "USD")).toBeNull();
  expect(limitOf([kafka], [...both, filter("identity_id", "a")], DAYS, "USD")).toBeNull();
  expect(limitOf([kafka], [filter("product_category", "KAFKA", true)], DAYS, "USD")).toBeNull();
  expect(limitOf([kafka], both, DAYS, "EUR")).toBeNull();
  expect(limitOf([kafka], both, ["2026-10-31T01:00"], "USD")).toBeNull();
  expect(limitOf([budget({}, null)], [], DAYS, "USD")).toBeNull();
});
