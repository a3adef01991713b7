import { expect, test } from "vitest";
import { advice, code, dimension, isNobody, label, method, reason } from "./names";

const ISSUES = [
  "NO_METRICS_LOCATED",
  "METRICS_UNAVAILABLE",
  "NO_USAGE_FOR_ACTIVE_IDENTITIES",
  "NO_OWNER_LOCATED",
  "NO_ACTIVE_IDENTITIES_LOCATED",
  "NO_IDENTITIES_LOCATED",
  "UNKNOWN_PRODUCT_TYPE",
];

test("every reason has words, and something that can be done", () => {
  for (const each of ISSUES) {
    expect(reason(each)).not.toMatch(/_/);
    expect(advice(each)).not.toBeNull();
  }
});

test("every method has words", () => {
  for (const each of ["usage_ratio", "even_split", "proportional", "direct", "terminal"])
    expect(method(each)).not.toMatch(/_/);
});

test.each([
  ["KAFKA_NUM_CKUS", "Kafka CKUs"],
  ["KAFKA_NETWORK_READ", "Kafka network read"],
  ["FLINK_NUM_CFUS", "Flink CFUs"],
  ["NUM_RULES", "Num rules"],
  ["SUPPORT", "Support"],
  ["SOMETHING_NEW", "Something new"],
])("%s is called %s", (text, expected) => {
  expect(code(text)).toBe(expected);
});

test("names stand before ids, and what is missing has a name", () => {
  expect(label("identity_id", "sa-1", "orders")).toEqual({ name: "orders", id: "sa-1" });
  expect(label("identity_id", "sa-1", null)).toEqual({ name: "sa-1", id: null });
  expect(label("identity_id", "UNALLOCATED").name).toBe("No owner");
  expect(label("environment_id", null).name).toBe("Organisation-wide");
  expect(label("tag:team", null).name).toBe("Without this tag");
  expect(label("tag:team", "UNTAGGED").name).toBe("Without this tag");
});

test("those who are not known are grey", () => {
  expect(isNobody("identity_id", "UNALLOCATED")).toBe(true);
  expect(isNobody("tag:team", null)).toBe(true);
  expect(isNobody("resource_id", "UNALLOCATED")).toBe(false);
});

test("a tag is called by its key", () => {
  expect(dimension("tag:cost_centre")).toBe("Cost centre");
});
