import { expect, test } from "vitest";
import { conditions, either, inOneLine, RIGHTS, refused } from "./rights";

test("a scope is told with the names of the page", () => {
  const scope = {
    "category:cost_center": ["payments", "search"],
    cluster_id: ["lkc-1"],
    product_type: ["KAFKA_NUM_CKUS"],
  };
  expect(conditions(scope)).toEqual([
    { what: "Cost centre", values: ["payments", "search"] },
    { what: "Cluster", values: ["lkc-1"] },
    { what: "Product", values: ["Kafka CKUs"] },
  ]);
  expect(inOneLine(scope)).toBe("Cost centre is payments or search, and Cluster is lkc-1, and Product is Kafka CKUs");
});

test("values are alternatives, and without values there is nothing", () => {
  expect(either(["a"])).toBe("a");
  expect(either(["a", "b", "c"])).toBe("a, b or c");
  expect(either([])).toBe("none");
});

test("a refusal names the right that is missing", () => {
  for (const [right] of RIGHTS) {
    expect(refused(right)).toMatch(/^You may not /);
    expect(refused(right)).toContain(`“${right}”`);
  }
});
