import { present } from "../../api/answer";
import { useOf } from "../../api/questions";
import type { Anomaly } from "../../api/shapes";
import { filtersOf, isTold } from "../../format/stories";
import { apiQuery, type Filter, passes, type View } from "../../url/view";

const NOTHING: ReadonlyMap<string, readonly string[]> = new Map();
/** What a story is about, as filters name it. */
const CATEGORY = "category:";
const KNOWN = ["identity_id", "product_category", CATEGORY];

/** What stands out on the days of a view, by day. It is asked for after the costs, and missing until it is there. */
export function useMarks(tenant: string, view: View): ReadonlyMap<string, readonly string[]> {
  const asked = { query: { ...apiQuery(view, { compare: false }), limit: 100 } };
  const found = present(useOf(tenant, "/anomalies", asked, canTell(view.filters)));
  return found ? marksOf(found.items, view.filters) : NOTHING;
}

/** Stories know who, which product, and of what category; of other filters nobody can say whether they match. */
function canTell(filters: readonly Filter[]): boolean {
  return filters.every(({ key }) => KNOWN.some((each) => key.startsWith(each)));
}

/** The sentences of what stands out and nobody has put aside, by the days that the filters leave. */
export function marksOf(items: readonly Anomaly[], filters: readonly Filter[]): Map<string, string[]> {
  const marks = new Map<string, string[]>();
  if (!canTell(filters)) return marks;
  for (const story of items.filter((each) => isTold(each) && passes(filters, (key) => carries(each, key))))
    for (const { date } of story.days) {
      const before = marks.get(date);
      if (before) before.push(story.sentence);
      else marks.set(date, [story.sentence]);
    }
  return marks;
}

/** What a story has of a key: all of it; nothing if it has several values, or none. */
function carries(story: Anomaly, key: string): string | undefined {
  return filtersOf(story).find((each) => each.key === key)?.value ?? story.belongs_to[key.replace(CATEGORY, "")];
}
