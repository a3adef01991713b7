import type { HealthProblem } from "../api/shapes";
import { say } from "../words/say";

/** What is wrong, in the words of its kind. */
export function nameOf({ kind, days }: Pick<HealthProblem, "kind" | "days">): string {
  const names: Record<HealthProblem["kind"], string> = {
    suspended: say("Suspended [a tenant]"),
    days_waiting: say("{days} {days|day|days} not calculated yet", { days }),
    run_failed: say("The last run had errors"),
    days_incomplete: say("{days} {days|day|days} calculated without something", { days }),
    topics_misconfigured: say("Topics are configured wrongly"),
  };
  return names[kind];
}
