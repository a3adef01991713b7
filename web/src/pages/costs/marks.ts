import { useMemo } from "preact/compat";
import { present } from "../../api/answer";
import { useAccess } from "../../api/me";
import { useOf } from "../../api/questions";
import type { Anomaly, Note, Restatements } from "../../api/shapes";
import type { MarkKind } from "../../charts/timechart";
import { instant } from "../../format/days";
import { signed } from "../../format/money";
import { cause } from "../../format/names";
import { filtersOf, isTold } from "../../format/stories";
import { read } from "../../money/money";
import type { Dates } from "../../url/period";
import { apiQuery, type Filter, passes, type View } from "../../url/view";
import { say } from "../../words/say";

/** Something to know of some days, beside their costs. */
export interface Mark extends Dates {
  kind: MarkKind;
  text: string;
}

/** What a story is about, as filters name it. */
const CATEGORY = "category:";
const KNOWN = ["identity_id", "product_category", CATEGORY];
const MOST = 1000;

/** The notes on the days of a view. */
export const useNotes = (tenant: string, { start, end }: Dates, enabled = true) =>
  useOf(tenant, "/notes", { query: { start_date: start, end_date: end, page_size: MOST } }, enabled);

/** What is to be known of the days of a view: what stands out, what was restated, and what somebody has noted. It is asked
 * for once the costs are `drawn`, and missing until it is there. */
export function useMarks(tenant: string, view: View, days: Dates, drawn: boolean): readonly Mark[] {
  const { seesAll } = useAccess(tenant);
  const { filters } = view;
  const query = apiQuery(view, { compare: false });
  const stories = present(useOf(tenant, "/anomalies", { query: { ...query, limit: 100 } }, drawn && canTell(filters)));
  // Restatements are about whole days: nobody can say whether a part of them has changed.
  const asked = { query: { start_date: days.start, end_date: days.end, page_size: MOST } };
  const restated = present(useOf(tenant, "/restatements", asked, drawn && seesAll && filters.length === 0));
  const notes = present(useNotes(tenant, days, drawn));
  return useMemo(
    () => [
      ...(stories ? storyMarks(stories.items, filters) : []),
      ...(restated && filters.length === 0 ? restatedMarks(restated) : []),
      ...(notes ? noteMarks(notes.items) : []),
    ],
    [stories, restated, notes, filters],
  );
}

/** Stories know who, which product, and of what category; of other filters nobody can say whether they match. */
function canTell(filters: readonly Filter[]): boolean {
  return filters.every(({ key }) => KNOWN.some((each) => key.startsWith(each)));
}

/** What stands out and nobody has put aside, on the days that the filters leave. */
export function storyMarks(items: readonly Anomaly[], filters: readonly Filter[]): Mark[] {
  if (!canTell(filters)) return [];
  return items
    .filter((each) => isTold(each) && passes(filters, (key) => carries(each, key)))
    .flatMap(({ days, sentence }) =>
      days.map(({ date }): Mark => ({ kind: "stands-out", start: date, end: date, text: sentence })),
    );
}

/** What a story has of a key: all of it; nothing if it has several values, or none. */
function carries(story: Anomaly, key: string): string | undefined {
  return filtersOf(story).find((each) => each.key === key)?.value ?? story.belongs_to[key.replace(CATEGORY, "")];
}

/** By how much and why days have other costs than at first. */
export function restatedMarks({ items, currency }: Pick<Restatements, "items" | "currency">): Mark[] {
  return items.map(({ date, calculated_at, causes, delta }) => {
    const [why, time] = [causes.map(cause).join(", "), instant(calculated_at)];
    const text =
      delta === null || read(delta) === 0n
        ? say("Restated {time}: {why}", { time, why })
        : say("Restated {time} by {amount}: {why}", { time, amount: signed(read(delta), currency), why });
    return { kind: "restated", start: date, end: date, text };
  });
}

function noteMarks(notes: readonly Note[]): Mark[] {
  return notes.map(({ start_date: start, end_date: end, text }) => ({ kind: "note", start, end, text }));
}

/** The marks of each place of a chart. */
export const marksAt = (marks: readonly Mark[], places: readonly Dates[]): Mark[][] =>
  places.map(({ start, end }) => marks.filter((each) => each.start <= end && start <= each.end));
