import { expect, test } from "vitest";
import type { Policy } from "../../api/shapes";
import { ownOf, versionOf, withPolicy } from "./draft";

const policy = (product_type: string, source: Policy["source"]): Policy => ({
  ...{ product_type, source, hash: "eba4a8afe7b6", effective_from: null, first_used_at: null },
  portions: [
    { number: 1, share: "0.70", methods: ["usage(bytes_in)", "unallocated"] },
    { number: 2, share: "0.30", methods: ["even(active)"] },
  ],
});

const BASE = `"KAFKA_BASE":
  portions:
    - {share: "0.70", try: ["usage(bytes_in)", "unallocated"]}
    - {share: "0.30", try: ["even(active)"]}`;

test("the draft begins with what the configuration says", () => {
  expect(ownOf([policy("KAFKA_BASE", "configured"), policy("SUPPORT", "shipped")])).toBe(BASE);
  expect(ownOf([policy("SUPPORT", "shipped")])).toBe("");
});

test("a policy is added once, however it is written", () => {
  const added = withPolicy("", policy("KAFKA_BASE", "shipped"));
  expect(added).toBe(BASE);
  expect(withPolicy(added, policy("KAFKA_BASE", "shipped"))).toBe(added);
  const plain = "KAFKA_BASE:\n  portions: []\n";
  expect(withPolicy(plain, policy("KAFKA_BASE", "shipped"))).toBe(plain);
  expect(withPolicy(plain, policy("SUPPORT", "shipped")).split("\n")[2]).toBe('"SUPPORT":');
});

test("a version begins with the next month", () => {
  expect(versionOf("SUPPORT:\n  portions: []\n", "2026-12-05")).toBe(
    [
      "# One more entry of the list allocation_policies; say why in `reason`.",
      "- effective_from: 2027-01-01",
      '  reason: ""',
      "  policies:",
      "    SUPPORT:",
      "      portions: []",
      "",
    ].join("\n"),
  );
});
