import { expect, test } from "vitest";
import { advice, cause, code, dimension, isNobody, label, method, reason, type } from "./names";

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

test("every cause of a revision has words", async () => {
  const { default: document } = await import("../../openapi.json");
  const { description } = document.components.schemas.RevisionItem.properties.cause;
  const causes = [...description.matchAll(/`(\w+)`/g)].map(([, name]) => name ?? "");
  expect(causes).toHaveLength(8);
  for (const each of causes)
    expect(cause(each)).not.toBe(each.charAt(0).toUpperCase() + each.slice(1).replace("_", " "));
});

test("every method has words", () => {
  for (const each of ["usage_ratio", "even_split", "proportional", "direct", "terminal"])
    expect(method(each)).not.toMatch(/_/);
});

test("types have words, and one that is not known keeps its code", () => {
  expect(["kafka_cluster", "service_account", "api_key", "flink_compute_pool"].map(type)).toEqual([
    "Kafka cluster",
    "Service account",
    "API key",
    "Flink compute pool",
  ]);
  expect(type("object_bucket")).toBe("object_bucket");
});

test.each([
  ["KAFKA_NUM_CKUS", "Kafka CKUs"],
  ["KAFKA_NETWORK_READ", "Kafka network read"],
  ["FLINK_NUM_CFUS", "Flink CFUs"],
  ["NUM_RULES", "Num rules"],
  ["SUPPORT", "Support"],
  ["SOMETHING_NEW", "Something new"],
  ["USE1-DataTransfer-In-Bytes", "USE1-DataTransfer-In-Bytes"],
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

test("values of a cost category are named by their register, and what is not assigned is grey", () => {
  expect(dimension("category:cost_center")).toBe("Cost centre");
  expect(dimension("category:cost_center@2")).toBe("Cost centre, 2 up");
  expect(label("category:cost_center", "payments", "Payments")).toEqual({ name: "Payments", id: "payments" });
  expect(label("category:cost_center", "UNASSIGNED").name).toBe("Not assigned");
  expect(isNobody("category:cost_center@1", "UNASSIGNED")).toBe(true);
  expect(isNobody("category:cost_center", "payments")).toBe(false);
});

test("a tag is called by its key", () => {
  expect(dimension("tag:cost_centre")).toBe("Cost centre");
});
