import { present } from "../../api/answer";
import { useOf } from "../../api/questions";
import type { Budget, BudgetStatus } from "../../api/shapes";
import { read, type Units } from "../../money/money";
import { Amount, share } from "../../ui/card";
import { keyOf } from "../costs/facts";

/** How many budgets are looked through: each is compared with its costs. */
const MOST = 100;
const NONE: ReadonlyMap<string, BudgetStatus> = new Map();
const NOBODY: readonly string[] = [];

/** How far the budgets of a month (`2026-11`; null asks nothing) are that are about one value of a column each. */
export function useBudgets(tenant: string, by: string, month: string | null): ReadonlyMap<string, BudgetStatus> {
  const asked = { query: { page_size: MOST, ...(month && { month }) } };
  const found = present(useOf(tenant, "/budgets", asked, month !== null));
  return month !== null && found ? budgetsOf(found.items, by) : NONE;
}

/** How far the budgets are that are about one value of a column and nothing else, by that value. */
export function budgetsOf(items: readonly Budget[], by: string): Map<string, BudgetStatus> {
  const known = new Map<string, BudgetStatus>();
  for (const { scope, status } of items) {
    const conditions = Object.entries(scope);
    const [value, ...others] = scope[by] ?? NOBODY;
    if (conditions.length === 1 && value !== undefined && others.length === 0 && status.budget !== null)
      known.set(keyOf(value), status);
  }
  return known;
}

/** What may be spent, and which part of it is. */
export function Budgeted({ total, budget }: { total: Units; budget: BudgetStatus | undefined }) {
  if (!budget || budget.budget === null) return null;
  const amount = read(budget.budget);
  return (
    <>
      <Amount amount={amount} currency={budget.currency} />{" "}
      <span className={total > amount ? "bad small" : "quiet small"}>{share(total, amount)}</span>
    </>
  );
}
