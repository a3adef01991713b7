import type { BudgetStatus } from "../api/shapes";
import { say } from "../words/say";

/** The states of a budget in words, and how good they are. */
export const BUDGET_STATES: Record<BudgetStatus["state"], [words: string, tone: string]> = {
  ok: [say("within the budget"), "quiet"],
  warning: [say("a threshold is reached"), "warn"],
  exceeded: [say("more than the budget"), "bad"],
  stale: [say("no recent days"), "warn"],
  insufficient_history: [say("too few days for a forecast"), "quiet"],
  no_budget: [say("no amount for this month"), "quiet"],
};
