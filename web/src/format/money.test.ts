import fc from "fast-check";
import { expect, test } from "vitest";
import { read, write } from "../money/money";
import { about, change, exact, money, percent, short, signed, split } from "./money";

test("amounts are shown to the cent, with a true minus", () => {
  expect(money("2762.306796452111", "USD")).toBe("$2,762.31");
  expect(money(read("-0.62"), "USD")).toBe("−$0.62");
  expect(money("99999999999999999999.99", "USD")).toBe("$99,999,999,999,999,999,999.99");
  expect(about(read("62082.4"), "USD")).toBe("$62,082");
  expect(short(61900, "USD")).toBe("$61.9K");
  expect(signed(read("449.5"), "EUR")).toBe("+€449.50");
});

test("what rounds to zero has no sign, and its exact value has", () => {
  for (const text of ["-0.004", "0.004", "0"]) {
    expect(money(text, "USD")).toBe("$0.00");
    expect(signed(read(text), "USD")).toBe("$0.00");
  }
  expect(signed(read("-0.005"), "USD")).toBe("−$0.01");
  expect(about(read("-0.4"), "USD")).toBe("$0");
  expect(exact("-0.004", "USD")).toBe("USD −0.004");
});

test("the exact value has every digit", () => {
  expect(exact("2762.306796452111", "USD")).toBe("USD 2762.306796452111");
});

test("what is split is the whole amount", () => {
  const units = fc.bigInt({ min: -(10n ** 24n), max: 10n ** 24n });
  fc.assert(
    fc.property(units, (each) => {
      return ["USD", "JPY", "KWD"].every((currency) => {
        const [cents, more] = split(write(each), currency);
        return read((cents + more).replaceAll(",", "").replace("−", "-")) === each;
      });
    }),
  );
  expect(split("1234.5", "USD")).toEqual(["1,234.50", ""]);
  expect(split("1234.5678", "KWD")).toEqual(["1,234.567", "8"]);
  expect(split("1234.5", "JPY")).toEqual(["1,234", ".5"]);
  expect(split("1234", "JPY")).toEqual(["1,234", ""]);
});

test("amounts are rounded to the minor unit of ISO 4217", () => {
  expect(money("122769.27", "JPY")).toBe("¥122,769");
  expect(money("1.5", "KWD")).toBe("KWD\u00a01.500");
  expect(money("1.5", "CLF")).toBe("CLF\u00a01.5000");
  expect(money("1.5", "IDR")).toBe("IDR\u00a01.50");
});

test.each([
  ["110", "100", "up", "+10.0%"],
  ["90", "100", "down", "−10.0%"],
  ["100", "100", "same", "no change"],
  ["100.001", "100", "same", "no change"],
  ["5", "0", "new", "new"],
  ["5000", "1", "up", "+>999%"],
  ["-50", "-100", "up", "+50.0%"],
])("%s after %s is %s, %s", (amount, previous, direction, text) => {
  expect(change(read(amount), read(previous))).toMatchObject({ direction, text });
});

test("nothing to compare with is no change at all", () => {
  expect(change(1n, null)).toBeNull();
});

test("there is no minus zero", () => {
  expect(percent(-0.0001)).toBe("0.0%");
  expect(percent(null)).toBe("–");
});
