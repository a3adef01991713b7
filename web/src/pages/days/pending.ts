import type { HealthProblem } from "../../api/shapes";
import type { Dates } from "../../url/period";

/** The days that wait and that a run can calculate: how many, and the first and the last of them. */
export interface Pending {
  days: number;
  dates: Dates;
  /** How many more wait for a source, which no run can end. */
  others: number;
}

/** What waits, of all that is wrong; null where no run would help. */
export function pendingOf(problems: readonly HealthProblem[]): Pending | null {
  const wait = problems.filter((each) => each.kind === "days_waiting");
  const ended = wait.filter((each) => each.ended_by === "run");
  const ends = ended.flatMap((each) => [each.start_date, each.end_date]).filter((each) => each !== null);
  const [start, end] = [ends.sort()[0], ends.at(-1)];
  if (!start || !end) return null;
  const days = daysOf(ended);
  return { days, dates: { start, end }, others: daysOf(wait) - days };
}

function daysOf(problems: readonly HealthProblem[]): number {
  return problems.reduce((all, each) => all + each.days, 0);
}
