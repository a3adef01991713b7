import { describe, expect, it } from "vitest";
import type { HealthProblem } from "../../api/shapes";
import { pendingOf } from "./pending";

const waits = (start: string, end: string, days: number, ended_by: HealthProblem["ended_by"] = "run") =>
  ({
    ...{ kind: "days_waiting", severity: "bad", causes: ["why"], remedy: "what" },
    ...{ ended_by, start_date: start, end_date: end, days },
  }) satisfies HealthProblem;

describe("the days that a run can calculate", () => {
  it("are counted from the first to the last, however far they lie apart", () => {
    const problems = [waits("2026-11-17", "2026-11-18", 2), waits("2026-11-02", "2026-11-02", 1)];
    expect(pendingOf(problems)).toEqual({ days: 3, dates: { start: "2026-11-02", end: "2026-11-18" }, others: 0 });
  });

  it("are without those that wait for a source, which are told apart", () => {
    const problems = [waits("2026-11-20", "2026-11-22", 3, "source"), waits("2026-11-17", "2026-11-17", 1)];
    expect(pendingOf(problems)).toEqual({ days: 1, dates: { start: "2026-11-17", end: "2026-11-17" }, others: 3 });
  });

  it("are none where nothing waits, or everything waits for a source", () => {
    const failed = { ...waits("2026-11-17", "2026-11-17", 0), kind: "run_failed" } as const;
    expect(pendingOf([failed])).toBeNull();
    expect(pendingOf([waits("2026-11-17", "2026-11-17", 1, "source")])).toBeNull();
  });
});
