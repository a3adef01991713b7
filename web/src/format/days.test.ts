import { expect, test } from "vitest";
import { add, isDay, length, weekday } from "../calendar/days";
import { instant, inTime, range, spoken } from "./days";

test("days have no hours, and no zone moves them", () => {
  expect(add("2026-03-29", 1)).toBe("2026-03-30");
  expect(add("2026-01-01", -1)).toBe("2025-12-31");
  expect(length("2026-10-20", "2026-11-15")).toBe(27);
  expect(weekday("2026-11-16")).toBe(0);
});

test("a day that does not exist is none", () => {
  expect(["2026-02-28", "2026-02-29", "2026-13-01", "today"].map(isDay)).toEqual([true, false, false, false]);
});

test("ranges say the year once, unless there are two", () => {
  expect(range("2026-10-20", "2026-11-15")).toBe("20 Oct – 15 Nov 2026");
  expect(range("2025-12-31", "2026-01-01")).toBe("31 Dec 2025 – 1 Jan 2026");
  expect(range("2026-01-01", "2026-01-01")).toBe("1 Jan 2026");
});

test("what holds on some days only says which, and the last of them is one", () => {
  expect(inTime({ valid_from: null, valid_to: null })).toBe("");
  expect(inTime({ valid_from: "2026-03-01", valid_to: "2026-10-01" })).toBe(" from 1 Mar 2026 to 30 Sep 2026");
  expect(inTime({ valid_to: "2026-03-01" })).toBe(" to 28 Feb 2026");
});

test("words for readers", () => {
  expect(spoken("2026-11-09")).toBe("Mon, 9 November 2026");
  expect(instant("2026-11-21T20:04:59Z")).toBe("21 Nov 2026, 20:04 UTC");
});
