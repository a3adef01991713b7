import { FILTERS, GROUPS } from "../api/filters";
import { isDay } from "../calendar/days";

/** The words of an address that are the page's alone. Every other one is a filter: the API says whether it knows it. */
const OWN = [
  "as_of",
  "chart",
  "cluster",
  "day",
  "days",
  "digits",
  "find",
  "focus",
  "from",
  "group",
  "help",
  "key",
  "parts",
  "per",
  "sort",
  "state",
  "tab",
  "table",
  "to",
  "top",
  "topic",
  "value",
  "why",
] as const;
export type Own = (typeof OWN)[number];

/** One condition. Several of one key mean one or the other; of several keys, all; `not` excludes. */
export interface Filter {
  key: string;
  value: string;
  not: boolean;
}

/** What a page shows. It is the query of the page's address, and the query of the API. */
export interface View {
  /** A named period such as `30d`, `month` or `2026-10`; null where two dates are given. */
  period: string | null;
  start: string | null;
  end: string | null;
  /** `previous`, `year`, `none`, or `2026-09-01..2026-09-30`. */
  compare: string;
  /** The currency of sums; null is that of the bill. */
  currency: string | null;
  /** What is shown over time; null lets the page choose. */
  by: string | null;
  filters: readonly Filter[];
  /** What only one page knows, such as `table` or `tab`. */
  extra: Readonly<Partial<Record<Own, string>>>;
}

export const DEFAULT_PERIOD = "30d";
export const PERIOD = /^([1-9]\d{0,2}d|(last-)?(week|month|quarter|year)|[12]\d{3}-(0[1-9]|1[0-2]))$/;
const CURRENCY = /^[A-Z]{3}$/;
const KNOWN = ["period", "start_date", "end_date", "compare", "by", "currency"];
const COMPARE = /^(previous|year|none|\d{4}-\d{2}-\d{2}\.\.\d{4}-\d{2}-\d{2})$/;

const COLUMNS = new Set(Object.values(FILTERS).flat());

/** Whether costs can be broken down by something. */
function isGroup(by: string): boolean {
  return GROUPS.includes(by) || (by.startsWith("tag:") && by.length > 4) || /^category:[\w-]+(@\d+)?$/.test(by);
}

/** Whether a list of the API has a filter. One that no list has is asked for: the API says what is wrong with it. */
export function takes(list: string, key: string): boolean {
  const columns = FILTERS[list];
  return columns !== undefined && (columns.includes(key) || !COLUMNS.has(key));
}

/** The key of the filter for a value of a dimension. A value some levels up (`category:cost_center@1`) is filtered by
 * the category itself: it has everything below it. */
export function filterKey(by: string): string {
  return by.startsWith("category:") ? by.replace(/@\d+$/, "") : by;
}

const hasOwnNames = (key: string) => key.startsWith("tag:") || key.startsWith("category:");

/** The values in a parameter of a filter: those of tags and categories are separated by commas; in a value, `\,` is a
 * comma and `\\` a backslash. */
function readValues(key: string, text: string): string[] {
  if (!hasOwnNames(key)) return [text];
  const values: string[] = [];
  let value = "";
  for (const piece of text.match(/\\[\\,]|[^\\,]+|[\\,]/g) ?? []) {
    if (piece === ",") {
      values.push(value);
      value = "";
    } else value += /^\\./.test(piece) ? piece.slice(1) : piece;
  }
  return [...values, value];
}

function writeValue(key: string, value: string): string {
  return hasOwnNames(key) ? value.replace(/[\\,]/g, "\\$&") : value;
}

/** Read a query. */
export function readView(search: string): View {
  const filters: Filter[] = [];
  const extra: Partial<Record<Own, string>> = {};
  const known: Record<string, string> = {};
  for (const [name, value] of new URLSearchParams(search)) {
    const own = OWN.find((each) => each === name);
    const not = name.startsWith("not.");
    const key = not ? name.slice(4) : name;
    if (own) extra[own] = value;
    else if (KNOWN.includes(name)) known[name] = value;
    else
      for (const one of readValues(key, value))
        if (!filters.some((each) => same(each, { key, value: one, not }))) filters.push({ key, value: one, not });
  }
  const { start_date: start = "", end_date: end = "", period = "", compare = "", by = "", currency = "" } = known;
  const dated = isDay(start) && isDay(end) && start <= end;
  return {
    period: dated ? null : PERIOD.test(period) ? period : DEFAULT_PERIOD,
    start: dated ? start : null,
    end: dated ? end : null,
    compare: COMPARE.test(compare) ? compare : "previous",
    currency: CURRENCY.test(currency) ? currency : null,
    by: isGroup(by) ? by : null,
    filters,
    extra,
  };
}

/** The query of a view, without what is usual; `?` included, empty for the usual view. */
export function writeView(view: View): string {
  const params = new URLSearchParams();
  if (view.start && view.end) {
    params.set("start_date", view.start);
    params.set("end_date", view.end);
  } else if (view.period && view.period !== DEFAULT_PERIOD) params.set("period", view.period);
  if (view.compare !== "previous") params.set("compare", view.compare);
  if (view.currency) params.set("currency", view.currency);
  if (view.by) params.set("by", view.by);
  for (const { key, value, not } of view.filters) params.append(not ? `not.${key}` : key, writeValue(key, value));
  for (const [key, value] of Object.entries(view.extra)) params.set(key, value);
  const text = params.toString().replaceAll("%3A", ":").replaceAll("%40", "@");
  return text && `?${text}`;
}

/** The period of a view, and what it is compared with, as the API is asked for them. */
export function apiQuery(view: View, { compare = true } = {}): PeriodQuery {
  const dates =
    view.start && view.end ? { start_date: view.start, end_date: view.end } : { period: view.period ?? DEFAULT_PERIOD };
  return { ...dates, ...(compare && { compare: view.compare }) };
}

export interface PeriodQuery {
  period?: string;
  start_date?: string;
  end_date?: string;
  compare?: string;
}

/** What is asked of sums, which can be in another currency. */
export function sumsQuery(view: View, options: { compare?: boolean } = {}): PeriodQuery & { currency?: string } {
  return { ...apiQuery(view, options), ...(view.currency && { currency: view.currency }) };
}

/** The filters that a list has, as parameters of the API. */
export function filterPairs(list: string, filters: readonly Filter[]): [string, string][] {
  return filters
    .filter(({ key }) => takes(list, key))
    .map(({ key, value, not }) => [not ? `not.${key}` : key, writeValue(key, value)]);
}

/** Whether something passes filters: of each key it has one of the values, and none that is left out. `carries` says
 * what it has of a key; null where that is not known, which passes. */
export function passes(filters: readonly Filter[], carries: (key: string) => string | null | undefined): boolean {
  return [...Map.groupBy(filters, (each) => each.key)].every(([key, all]) => {
    const value = carries(key);
    if (value === null) return true;
    const wanted = all.filter((each) => !each.not);
    const isLeftOut = all.some((each) => each.not && each.value === value);
    return !isLeftOut && (wanted.length === 0 || wanted.some((each) => each.value === value));
  });
}

function same(a: Filter, b: Filter): boolean {
  return a.key === b.key && a.value === b.value && a.not === b.not;
}

export function has(view: View, by: string, value: string, not = false): boolean {
  return view.filters.some((each) => same(each, { key: filterKey(by), value, not }));
}

/** Add a filter, or take it away if it is there: twice is nothing. The opposite of the same value goes. */
export function toggle(view: View, by: string, value: string, not = false): View {
  const key = filterKey(by);
  const filter = { key, value, not };
  if (has(view, key, value, not)) return { ...view, filters: view.filters.filter((each) => !same(each, filter)) };
  return { ...view, filters: [...view.filters.filter((each) => !same(each, { ...filter, not: !not })), filter] };
}

export function during(view: View, start: string, end: string): View {
  return { ...view, period: null, start, end };
}

/** Set or, with null, remove what only one page knows. */
export function extra(view: View, key: Own, value: string | null): View {
  const { [key]: _, ...rest } = view.extra;
  return { ...view, extra: value === null ? rest : { ...rest, [key]: value } };
}
