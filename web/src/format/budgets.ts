import type { BudgetStatus } from "../api/shapes";

/** The states of a budget in words, and how good they are. */
export const BUDGET_STATES: Record<BudgetStatus["state"], [words: string, tone: string]> = {
  ok: ["within the budget", "quiet"],
  warning: ["a threshold is reached", "warn"],
  exceeded: ["more than the budget", "bad"],
  stale: ["no recent days", "warn"],
  insufficient_history: ["too few days for a forecast", "quiet"],
  no_budget: ["no amount for this month", "quiet"],
};
