import fc from "fast-check";
import { expect, test } from "vitest";
import { fromField, isMoment, toField } from "./moment";

const seconds = fc
  .date({ min: new Date("1970-01-02"), max: new Date("2999-12-30"), noInvalidDate: true })
  .map((date) => `${date.toISOString().slice(0, 19)}Z`);

test("what a field holds is the moment that it was given, to the second", () => {
  fc.assert(
    fc.property(seconds, (moment) => {
      expect(isMoment(moment)).toBe(true);
      expect(fromField(toField(moment))).toBe(moment);
      expect(fromField(toField(moment).slice(0, 16))).toBe(`${moment.slice(0, 16)}:00Z`);
    }),
    { numRuns: 500 },
  );
});

test("what is no moment is none", () => {
  for (const text of ["", "now", "2026-11-15", "2026-13-01T00:00:00Z", "2026-11-15T25:00:00Z", "2026-11-15T12:00:00"])
    expect(isMoment(text)).toBe(false);
  for (const text of ["", "2026-11-15", "2026-02-30T99:00"]) expect(fromField(text)).toBe(null);
  expect(isMoment("2026-11-15T12:00:00.123456Z")).toBe(true);
  expect(toField(null)).toBe("");
});
