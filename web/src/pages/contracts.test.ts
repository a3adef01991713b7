import { expect, test } from "vitest";
import { short } from "./contracts";

test("a number has no zeros at its end, and commas between thousands", () => {
  expect(["5000.00", "1234567.50", "0.000001", "12", "99.50", "100"].map(short)).toEqual([
    "5,000",
    "1,234,567.5",
    "0.000001",
    "12",
    "99.5",
    "100",
  ]);
});
