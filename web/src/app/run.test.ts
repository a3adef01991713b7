import { describe, expect, it } from "vitest";
import { inWords } from "./run";

describe("how far a run is", () => {
  const nothing = { stage: null, date: null, done: 0, total: 0, is_cancelled: false };

  it("is said as far as it is known", () => {
    expect(inWords(nothing)).toBe("");
    expect(inWords({ ...nothing, stage: "topic_overlay" })).toBe("topic overlay");
    expect(inWords({ ...nothing, stage: "calculating", done: 12, total: 35 })).toBe("calculating, 12 of 35 days");
  });
});
