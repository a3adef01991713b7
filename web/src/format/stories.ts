import type { Anomaly } from "../api/shapes";
import type { Filter } from "../url/view";

/** Whether a story is told: nobody has put it aside, and no other one tells it as well. */
export function isTold({ mark, goes_with }: Pick<Anomaly, "mark" | "goes_with">): boolean {
  return goes_with === null && (!mark || mark.status === "confirmed");
}

/** What a story is about, as filters of the costs. */
export function filtersOf({
  identity_id,
  category,
  value,
  product_category,
}: Pick<Anomaly, "identity_id" | "category" | "value" | "product_category">): Filter[] {
  const named = { identity_id, [`category:${category}`]: value, product_category };
  return Object.entries(named).flatMap(([key, value]) => (value === null ? [] : [{ key, value, not: false }]));
}
