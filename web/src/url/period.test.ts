import { expect, test } from "vitest";
import { billed, resolve, shifted, wholeMonths } from "./period";
import { readView } from "./view";

const LAST = "2026-11-16";
const dates = (query: string) => Object.values(resolve(readView(query), LAST));

test("a named period ends with the last calculated day", () => {
  expect(dates("")).toEqual(["2026-10-18", LAST]);
  expect(dates("?period=7d")).toEqual(["2026-11-10", LAST]);
  expect(dates("?period=month")).toEqual(["2026-11-01", LAST]);
  expect(dates("?period=quarter")).toEqual(["2026-10-01", LAST]);
  expect(dates("?period=last-month")).toEqual(["2026-10-01", "2026-10-31"]);
  expect(dates("?period=week")).toEqual([LAST, LAST]);
  expect(dates("?period=last-week")).toEqual(["2026-11-09", "2026-11-15"]);
  expect(dates("?period=last-quarter")).toEqual(["2026-07-01", "2026-09-30"]);
  expect(dates("?period=year")).toEqual(["2026-01-01", LAST]);
  expect(dates("?period=last-year")).toEqual(["2025-01-01", "2025-12-31"]);
  expect(dates("?period=2024-02")).toEqual(["2024-02-01", "2024-02-29"]);
  expect(dates("?start_date=2026-01-02&end_date=2026-01-03")).toEqual(["2026-01-02", "2026-01-03"]);
});

test("last month of January is in the year before", () => {
  expect(resolve(readView("?period=last-month"), "2026-01-14")).toEqual({ start: "2025-12-01", end: "2025-12-31" });
  expect(resolve(readView("?period=last-quarter"), "2026-01-14")).toEqual({ start: "2025-10-01", end: "2025-12-31" });
});

test("months are whole", () => {
  expect(wholeMonths({ start: "2026-10-18", end: "2026-11-16" })).toEqual({ start: "2026-10-01", end: "2026-11-30" });
});

test("a bill begins with the last whole month that has costs", () => {
  const months = (query: string, first: string | null, last = LAST) =>
    Object.values(billed(readView(query), first, last));
  expect(months("", "2026-01-05")).toEqual(["2026-10-01", "2026-10-31"]);
  expect(months("", "2026-10-31")).toEqual(["2026-10-01", "2026-10-31"]);
  expect(months("", "2026-01-05", "2026-10-31")).toEqual(["2026-10-01", "2026-10-31"]);
  expect(months("", "2026-11-01")).toEqual(["2026-10-01", "2026-11-30"]);
  expect(months("?period=7d", "2026-01-05")).toEqual(["2026-11-01", "2026-11-30"]);
  expect(months("?start_date=2026-09-02&end_date=2026-10-03", null)).toEqual(["2026-09-01", "2026-10-31"]);
});

test("whole months move by months, other dates by days", () => {
  expect(shifted({ start: "2026-12-01", end: "2026-12-31" }, -1)).toEqual({ start: "2026-11-01", end: "2026-11-30" });
  expect(shifted({ start: "2026-10-01", end: "2026-11-30" }, 1)).toEqual({ start: "2026-12-01", end: "2027-01-31" });
  expect(shifted({ start: "2026-11-10", end: "2026-11-16" }, -1)).toEqual({ start: "2026-11-03", end: "2026-11-09" });
});
