/** What is asked of costs, known from the address alone. */
import { sumsQuery, type View } from "../url/view";
import type { Asked, Query } from "./address";

/** The costs of a view by several dimensions, of which the first is over time. */
export const costsOf = (view: View, by: readonly string[], more: Query<"/costs"> = {}): Asked<"/costs"> => ({
  query: { ...sumsQuery(view), by: [...by], ...more },
  filters: view.filters,
});

/** How many values of a breakdown can be listed: what the service lists unless it is asked for more, comes first. */
export const TOPS = [7, 20, 50] as const;

/** How many values of a breakdown a view lists. */
export const topOf = (view: View): number => TOPS.find((each) => String(each) === view.extra.top) ?? TOPS[0];

/** All that the page of costs shows of a view. What the tenant is usually seen by, the service knows. */
export const allCostsOf = (view: View): Asked<"/costs"> =>
  costsOf(view, view.by ? [view.by, "usual"] : ["usual"], {
    include: ["issues,days,forecast,topics"],
    ...(topOf(view) > TOPS[0] && { top: topOf(view) }),
  });
