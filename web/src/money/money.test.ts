import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { larger, ratio, read, sum, write } from "./money";

const units = fc.bigInt({ min: -(10n ** 30n), max: 10n ** 30n });

describe("money", () => {
  test("what is written is read again", () => {
    fc.assert(fc.property(units, (each) => read(write(each)) === each));
  });

  test("sums and differences are exact", () => {
    fc.assert(fc.property(units, units, (a, b) => read(write(a + b)) - read(write(b)) === a));
    expect(write(sum(["0.1", "0.2", "-0.3"].map(read)))).toBe("0.00");
  });

  test.each([
    ["0", "0.00"],
    ["2762.306796452111", "2762.306796452111"],
    ["-0.000000000001", "-0.000000000001"],
    ["0.00000000000000000001", "0.00000000000000000001"],
    ["7.50000000000000000000", "7.50"],
  ])("%s is %s", (text, expected) => {
    expect(write(read(text))).toBe(expected);
  });

  test.each(["", "1e3", "1,000", "NaN", "--1", "1.", "0.000000000000000000000000000000001"])(
    "%j is no amount",
    (text) => {
      expect(() => read(text)).toThrow(RangeError);
    },
  );

  test("a share of nothing is none", () => {
    expect(ratio(1n, 0n)).toBeNull();
    expect(ratio(read("1"), read("3"))).toBeCloseTo(1 / 3, 8);
  });

  test("the larger comes first", () => {
    expect([1n, 3n, 2n].sort(larger)).toEqual([3n, 2n, 1n]);
  });
});
