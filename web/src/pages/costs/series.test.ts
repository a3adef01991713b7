import fc from "fast-check";
import { expect, test } from "vitest";
import { add } from "../../calendar/days";
import { read, sum } from "../../money/money";
import type { Drawing } from "../../url/drawing";
import { aheadOf, inSteps, type Series } from "./series";

const day = (start: string): Series["places"][number] => ({ start, end: start });

function seriesOf(first: string, amounts: readonly bigint[]): Series {
  return {
    places: amounts.map((_, index) => day(add(first, index))),
    bands: [{ key: "a", name: "a", colour: "k1", amounts }],
    totals: amounts,
    before: amounts.map((each, index) => (index === 0 ? null : each)),
    limit: null,
  };
}

const drawing = (change: Partial<Drawing>): Drawing => ({ step: "day", form: "areas", running: false, ...change });

test("weeks begin on Monday, months on their first day, and the ends have the days of the period only", () => {
  // 1 October 2026 is a Thursday.
  const series = seriesOf("2026-10-29", Array<bigint>(6).fill(1n));
  expect(inSteps(series, drawing({ step: "week" }))).toMatchObject({
    places: [
      { start: "2026-10-29", end: "2026-11-01" },
      { start: "2026-11-02", end: "2026-11-03" },
    ],
    totals: [4n, 2n],
    before: [null, 2n],
  });
  expect(inSteps(series, drawing({ step: "month" }))).toMatchObject({
    places: [
      { start: "2026-10-29", end: "2026-10-31" },
      { start: "2026-11-01", end: "2026-11-03" },
    ],
    totals: [3n, 3n],
  });
});

test("whatever the steps, the total is the same to the last digit, and what runs ends with it", () => {
  fc.assert(
    fc.property(
      fc.array(fc.bigInt({ min: -(10n ** 40n), max: 10n ** 40n }), { minLength: 1, maxLength: 100 }),
      fc.constantFrom("day", "week", "month"),
      (amounts, step) => {
        const series = seriesOf("2026-09-17", amounts);
        const each = inSteps(series, drawing({ step }));
        const running = inSteps(series, drawing({ step, running: true }));
        expect(sum(each.totals)).toBe(sum(amounts));
        expect(running.totals.at(-1)).toBe(sum(amounts));
        expect(each.bands[0]?.amounts).toEqual(each.totals);
        expect(running.before?.every((known) => known === null)).toBe(true);
      },
    ),
  );
});

test("days alone are as they were", () => {
  const series = seriesOf("2026-11-01", [3n, 4n]);
  expect(inSteps(series, drawing({}))).toEqual(series);
});

test("what is expected is shown behind the running costs of the month's days, and nowhere else", () => {
  const forecast = {
    until: "2026-11-30",
    actual_to: "2026-11-02",
    actual: "7",
    expected: "90",
    low: "80",
    high: "120",
    method: "",
  };
  const ahead = (first: string, change: Partial<Drawing>, amounts = ["3", "4"].map(read)) =>
    aheadOf(inSteps(seriesOf(first, amounts), drawing(change)), drawing(change), forecast);
  expect(ahead("2026-11-01", { running: true })).toEqual({
    places: 28,
    low: read("80"),
    expected: read("90"),
    high: read("120"),
  });
  expect(ahead("2026-11-01", {})).toBeNull();
  expect(ahead("2026-11-01", { running: true, form: "shares" })).toBeNull();
  expect(ahead("2026-11-01", { running: true, step: "week" })).toBeNull();
  expect(ahead("2026-10-31", { running: true })).toBeNull();
  expect(ahead("2026-11-01", { running: true }, ["3", "5"].map(read))).toBeNull();
});
