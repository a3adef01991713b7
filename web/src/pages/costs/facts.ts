import type { Breakdown, Costs, Tenant } from "../../api/shapes";
import { length } from "../../calendar/days";
import type { Ranked } from "../../charts/ranked";
import { brief } from "../../format/days";
import { dimension, label, OUTSIDE, UNTAGGED } from "../../format/names";
import { read, sum, type Units } from "../../money/money";
import { has, toggle, type View } from "../../url/view";
import { say } from "../../words/say";

const OFTEN = 0.5;
export const USUAL = ["identity_id", "environment_id", "product_type", "resource_id"];

/** The tag that most of the cost has, or null. */
export function leadingTag(tenant: Tenant | undefined): string | null {
  const keys = tenant?.tag_keys.map((each) => ({ key: each.key, part: Number(each.coverage ?? 0) }));
  keys?.sort((a, b) => b.part - a.part || a.key.localeCompare(b.key));
  return keys?.[0] && keys[0].part >= OFTEN ? `tag:${keys[0].key}` : null;
}

/** Whether what is compared has equally many days with costs; the words say why not. */
export function comparison(costs: Costs): { comparable: boolean; why: string | null } {
  const { compared_with: with_, days_with_costs: days } = costs;
  if (!with_) return { comparable: false, why: null };
  if (with_.days_with_costs === days) return { comparable: days > 0, why: null };
  if (with_.days_with_costs === 0)
    return { comparable: false, why: say("there are no costs before: nothing to compare with") };
  const whole = length(with_.start_date, with_.end_date);
  const why =
    with_.days_with_costs < whole
      ? say("the period before has only {some} of {n} {n|day|days}: not comparable", {
          some: with_.days_with_costs,
          n: whole,
        })
      : say("this period has only {some} of {n} {n|day|days}: not comparable", {
          some: days,
          n: length(costs.start_date, costs.end_date),
        });
  return { comparable: false, why };
}

export function maybe(text: string | null | undefined): Units | null {
  return text == null ? null : read(text);
}

/** What a filter says for a value that is not there. */
export function filterValue(by: string, value: string | null): string {
  return value ?? (by.startsWith("tag:") ? UNTAGGED : "");
}

export function keyOf(value: string | null): string {
  return value ?? "\u0000";
}

export const OTHERS = "\u0000others";

/** How many values a breakdown has, named or not. */
export function valuesOf(found: Breakdown): number {
  return found.items.length + (found.other?.count ?? 0);
}

interface Listing {
  view: View;
  to: (view: View) => string;
  colour: (value: string | null, index: number) => string;
}

/** The first `most` values of a breakdown, and all that remain as one. */
export function ranked(found: Breakdown, most: number, { view, to, colour }: Listing): Ranked[] {
  const shown = found.items.slice(0, most);
  const items = shown.map((item, index): Ranked => {
    const value = filterValue(found.by, item.value);
    const { name, id } = label(found.by, item.value, item.name);
    const closed = item.value === null && !found.by.startsWith("tag:") && !(found.by in OUTSIDE);
    return {
      key: keyOf(item.value),
      name,
      id,
      title: [dimension(found.by), item.value, item.deleted_at && say("deleted {day}", { day: brief(item.deleted_at) })]
        .filter(Boolean)
        .join(" · "),
      colour: colour(item.value, index),
      amount: read(item.amount),
      previous: maybe(item.previous),
      href: closed ? null : to(toggle(view, found.by, value)),
      not: closed || has(view, found.by, value) ? null : to(toggle(view, found.by, value, true)),
      picked: has(view, found.by, value),
    };
  });
  const rest = remainder(found, most);
  if (rest)
    items.push({
      ...rest,
      key: OTHERS,
      id: null,
      title: "",
      colour: colour(null, -1),
      href: null,
      not: null,
      picked: false,
    });
  return items;
}

/** What is behind the first `most` values together: the rest of the list and the others of the service. */
export function remainder(
  found: Breakdown,
  most: number,
): { name: string; amount: Units; previous: Units | null } | null {
  const number = valuesOf(found) - Math.min(most, found.items.length);
  if (number === 0) return null;
  const parts = [...found.items.slice(most), ...(found.other ? [found.other] : [])];
  const amount = sum(parts.map((each) => read(each.amount)));
  const earlier = parts.map((each) => maybe(each.previous)).filter((each) => each !== null);
  const previous = earlier.length < parts.length ? null : sum(earlier);
  return { name: say("{n} {n|other|others}", { n: number }), amount, previous };
}
