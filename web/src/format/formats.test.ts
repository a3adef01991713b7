import fc from "fast-check";
import { afterEach, expect, test, vi } from "vitest";
import { read, type Units, write } from "../money/money";
import { say } from "../words/say";
import { brief, full, instant, month, monthRange, range, spoken } from "./days";
import { CHOICES, choose, chosen, type Formats, formats, grouped, signs } from "./formats";
import { about, change, exact, money, percent, short, signed, split } from "./money";

const USUAL = { ...formats };
const ALL: Formats[] = CHOICES.numbers.flatMap((numbers) =>
  CHOICES.dates.flatMap((dates) => CHOICES.currency.map((currency) => ({ numbers, dates, currency }))),
);
const GERMAN: Formats = { numbers: "1.234,56", dates: "14.11.2026", currency: "after" };
const ISO: Formats = { numbers: "1 234,56", dates: "2026-11-14", currency: "after" };
const WRITTEN = ["USD", "EUR", "CHF", "JPY", "KWD"];
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

afterEach(() => {
  Object.assign(formats, USUAL);
  vi.unstubAllGlobals();
});

/** The amount that a text says, whatever stands around its digits. */
function amountIn(text: string): Units {
  const { thousands, point } = signs();
  const digits = text.replaceAll(thousands, "").replace(point, ".").replace("−", "-");
  return read(digits.replace(/[^-.\d]/g, ""));
}

/** The day that a text says. */
function dayIn(text: string): string {
  if (formats.dates === "2026-11-14") return text;
  if (formats.dates === "14.11.2026") return text.split(".").reverse().join("-");
  const [day = "", name = "", year = ""] = text.split(" ");
  return `${year}-${String(MONTHS.indexOf(name) + 1).padStart(2, "0")}-${day.padStart(2, "0")}`;
}

test("the choices are those of the service", async () => {
  const { default: document } = await import("../../openapi.json");
  const { numbers, dates, currency } = document.components.schemas.StatementFormat.properties;
  const service = [numbers.enum, dates.enum, currency.enum.toSorted()];
  expect([CHOICES.numbers, CHOICES.dates, CHOICES.currency.toSorted()]).toEqual(service);
});

test.each(ALL)("$numbers, $dates, currency $currency: what is written reads back as the same", (each) => {
  Object.assign(formats, each);
  const units = fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n });
  fc.assert(
    fc.property(units, fc.constantFrom(...WRITTEN), (amount, currency) => {
      expect(amountIn(exact(amount, currency))).toBe(amount);
      expect(amountIn(split(write(amount), currency).join(""))).toBe(amount);
      expect(amountIn(grouped(write(amount)))).toBe(amount);
      const cents = amountIn(money(amount, currency));
      expect(amountIn(money(cents, currency))).toBe(cents);
      expect(money(amount, currency).startsWith("−")).toBe(cents < 0n);
    }),
  );
  const days = fc.date({ min: new Date("2020-01-01"), max: new Date("2039-12-31"), noInvalidDate: true });
  fc.assert(
    fc.property(days, (date) => {
      const day = date.toISOString().slice(0, 10);
      expect(dayIn(full(day))).toBe(day);
      expect(full(day)).toContain(brief(day));
    }),
  );
});

test("points between thousands, a comma before decimals, days with points, and the currency behind", () => {
  Object.assign(formats, GERMAN);
  expect(money("-1234.5", "USD")).toBe("−1.234,50\u00a0$");
  expect(money("1.5", "KWD")).toBe("1,500\u00a0KWD");
  expect(about(read("62082.4"), "EUR")).toBe("62.082\u00a0€");
  expect(short(61900, "USD")).toBe("61,9K\u00a0$");
  expect(signed(read("449.5"), "USD")).toBe("+449,50\u00a0$");
  expect(exact("-2762.306796452111", "USD")).toBe("−2762,306796452111 USD");
  expect(split("1234.5678", "USD")).toEqual(["1.234,56", "78"]);
  expect(split("1234.5", "JPY")).toEqual(["1.234", ",5"]);
  expect(percent(0.1234)).toBe("12,3%");
  expect(change(read("110"), read("100"))?.text).toBe("+10,0%");
  expect(say("{n} {n|day|days}", { n: 1200 })).toBe("1.200 days");
  expect([brief("2026-11-05"), full("2026-11-05T10:00:00Z")]).toEqual(["05.11.", "05.11.2026"]);
  expect(spoken("2026-11-09")).toBe("Mon, 09.11.2026");
  expect(range("2026-10-20", "2026-11-15")).toBe("20.10. – 15.11.2026");
  expect(range("2025-12-31", "2026-01-01")).toBe("31.12.2025 – 01.01.2026");
  expect([month("2026-11"), monthRange("2026-10-01", "2026-11-30")]).toEqual([
    "November 2026",
    "October – November 2026",
  ]);
});

test("narrow spaces between thousands, and days by ISO 8601", () => {
  Object.assign(formats, ISO);
  expect(money("1234567.5", "USD")).toBe("1\u202f234\u202f567,50\u00a0$");
  expect([brief("2026-11-05"), spoken("2026-11-09")]).toEqual(["11-05", "Mon, 2026-11-09"]);
  expect(range("2026-10-20", "2026-11-15")).toBe("2026-10-20 – 2026-11-15");
  expect([month("2026-11"), monthRange("2026-10-01", "2026-11-30")]).toEqual(["2026-11", "2026-10 – 2026-11"]);
  expect(instant("2026-11-21T20:04:59Z")).toBe("2026-11-21, 20:04 UTC");
});

test("a browser remembers what is chosen, and nothing of what is usual", () => {
  const kept = new Map<string, string>();
  vi.stubGlobal("localStorage", {
    getItem: (name: string) => kept.get(name) ?? null,
    setItem: (name: string, value: string) => kept.set(name, value),
    removeItem: (name: string) => kept.delete(name),
  });
  choose("numbers", "1.234,56");
  choose("dates", "14 November 2026");
  choose("currency", "somewhere");
  expect([...kept.keys()]).toEqual(["chargeback.numbers", "chargeback.currency"]);
  expect(chosen()).toEqual({ ...USUAL, numbers: "1.234,56" });
});
