import { useMemo } from "preact/compat";
import { present } from "../../api/answer";
import { useOf } from "../../api/questions";
import type { Budget } from "../../api/shapes";
import { type Day, firstOfMonth, isDay, lastOfMonth, length } from "../../calendar/days";
import { read, type Units } from "../../money/money";
import type { Filter, View } from "../../url/view";

/** How many budgets are looked through. */
const MOST = 100;

export interface Limit {
  name: string;
  /** What of the budget is for each time. */
  amounts: (Units | null)[];
}

/** The budget of the costs of a view, day by day; nothing where none is about just these. */
export function useLimit(
  tenant: string,
  view: View,
  times: readonly string[],
  currency: string,
  drawn: boolean,
): Limit | null {
  const found = present(
    useOf(tenant, "/budgets", { query: { page_size: MOST } }, drawn && view.filters.every(({ not }) => !not)),
  );
  return useMemo(
    () => (found ? limitOf(found.items, view.filters, times, currency) : null),
    [found, view.filters, times, currency],
  );
}

/** The first budget whose scope is what filters leave, in a currency. A day has an equal part of its month. */
export function limitOf(
  items: readonly Pick<Budget, "name" | "scope" | "amounts" | "monthly" | "status">[],
  filters: readonly Filter[],
  times: readonly string[],
  currency: string,
): Limit | null {
  if (!times.every(isDay) || filters.some(({ not }) => not)) return null;
  const wanted = written(filters.map(({ key, value }) => [key, value]));
  const budget = items.find(({ scope, status }) => status.currency === currency && written(pairs(scope)) === wanted);
  if (!budget) return null;
  const amounts = times.map((day) => {
    const amount = budget.amounts[day.slice(0, 7)] ?? budget.monthly;
    return amount === null ? null : read(amount) / BigInt(daysOf(day));
  });
  return amounts.every((each) => each === null) ? null : { name: budget.name, amounts };
}

function pairs(scope: Budget["scope"]): [string, string][] {
  return Object.entries(scope).flatMap(([key, values]) => values.map((value): [string, string] => [key, value]));
}

function written(conditions: readonly [string, string][]): string {
  return JSON.stringify(conditions.map((each) => JSON.stringify(each)).sort());
}

function daysOf(day: Day): number {
  return length(firstOfMonth(day), lastOfMonth(day));
}
