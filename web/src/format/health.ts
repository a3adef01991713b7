import type { HealthProblem } from "../api/shapes";
import { count } from "./days";

/** What is wrong, in the words of its kind. */
export function nameOf({ kind, days }: Pick<HealthProblem, "kind" | "days">): string {
  const names: Record<HealthProblem["kind"], string> = {
    suspended: "Suspended",
    days_waiting: `${count(days, "day")} not calculated yet`,
    run_failed: "The last run had errors",
    days_incomplete: `${count(days, "day")} calculated without something`,
    topics_misconfigured: "Topics are configured wrongly",
  };
  return names[kind];
}
