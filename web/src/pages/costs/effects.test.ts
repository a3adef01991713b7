import { describe, expect, test } from "vitest";
import { read } from "../../money/money";
import { effectsOf } from "./effects";

const NONE = {
  calendar: "0.00",
  quantity: "0.00",
  price: "0.00",
  policy: "0.00",
  share: "0.00",
  ownership: "0.00",
  correction: "0.00",
  new: "0.00",
  gone: "0.00",
};

describe("effects", () => {
  test("the largest is first, whatever its sign, and zeros are left out", () => {
    const found = effectsOf({ ...NONE, price: "1.00", quantity: "-2.000000000001", new: "0.50" });
    expect(found.map((each) => each.name)).toEqual(["Quantity billed", "Price", "New"]);
    expect(found[0]?.difference).toBe(read("-2.000000000001"));
    expect(effectsOf(NONE)).toEqual([]);
  });

  test("the share is called as in the sentences", () => {
    expect(effectsOf({ ...NONE, share: "1.00" }).map((each) => each.name)).toEqual(["Share of the usage"]);
  });
});
