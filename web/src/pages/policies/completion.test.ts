import { expect, test } from "vitest";
import type { Policy } from "../../api/shapes";
import { completed, completions, wordsOf } from "./completion";

const POLICY: Policy = {
  ...{ product_type: "KAFKA_BASE", source: "shipped", hash: "eba4a8afe7b6", effective_from: null, first_used_at: null },
  portions: [{ number: 1, share: "1", methods: ["usage(bytes_in + bytes_out)", "unallocated"] }],
};
const WORDS = wordsOf([POLICY, { ...POLICY, product_type: "KAFKA_STORAGE" }]);

test("words are product types, keys and methods, each once", () => {
  expect(WORDS.filter((each) => each === "unallocated")).toHaveLength(1);
  expect(WORDS).toContain("usage(bytes_in + bytes_out)");
  expect(WORDS).toContain("KAFKA_STORAGE:");
});

test("the word before the caret is completed, whatever its case", () => {
  expect(completions("kafka", 5, WORDS)).toEqual(["KAFKA_BASE:", "KAFKA_STORAGE:"]);
  expect(completions("- {share: 1, try: [even(a", 25, WORDS)).toEqual(["even(active)"]);
  expect(completions("", 0, WORDS)).toEqual([]);
  expect(completions("owner", 5, WORDS)).toEqual([]);
  expect(completions("try: [us] # more", 8, WORDS)).toEqual(["usage(bytes_in + bytes_out)"]);
  const { text, caret } = completed("try: [us] # more", 8, "usage(bytes_in)");
  expect(text).toBe("try: [usage(bytes_in)] # more");
  expect(text.slice(0, caret)).toBe("try: [usage(bytes_in)");
});
