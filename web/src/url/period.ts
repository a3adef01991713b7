import { add, addMonths, type Day, firstOfMonth, lastOfMonth, length, monthsOf, weekday } from "../calendar/days";
import { DEFAULT_PERIOD, type View } from "./view";

/** Days, both included. */
export interface Dates {
  start: Day;
  end: Day;
}

/** The dates of a view, as the service finds them: a named period ends with `last`, the last calculated day. */
export function resolve(view: View, last: Day): Dates {
  if (view.start && view.end) return { start: view.start, end: view.end };
  const period = view.period ?? DEFAULT_PERIOD;
  if (period.endsWith("d")) return { start: add(last, 1 - Number.parseInt(period, 10)), end: last };
  if (period.startsWith("last-")) {
    const unit = period.slice("last-".length);
    const end = add(firstOf(unit, last) ?? last, -1);
    return { start: firstOf(unit, end) ?? end, end };
  }
  const start = firstOf(period, last);
  return start ? { start, end: last } : { start: `${period}-01`, end: lastOfMonth(`${period}-01`) };
}

/** The first day of the week, month, quarter or year that a day is in. */
function firstOf(unit: string, day: Day): Day | null {
  const month = firstOfMonth(day);
  if (unit === "week") return add(day, -weekday(day));
  if (unit === "month") return month;
  if (unit === "quarter") return addMonths(month, -((Number(day.slice(5, 7)) - 1) % 3));
  return unit === "year" ? `${day.slice(0, 4)}-01-01` : null;
}

/** The months that some dates touch, each of them whole. */
export function wholeMonths({ start, end }: Dates): Dates {
  return { start: firstOfMonth(start), end: lastOfMonth(end) };
}

/** The months of a bill: those that a view touches or, where it says nothing of its own, the last whole one that has
 * costs, which can be booked. `first` and `last` are the days that have any. */
export function billed(view: View, first: Day | null, last: Day): Dates {
  const end = last === lastOfMonth(last) ? last : add(firstOfMonth(last), -1);
  if (view.period !== DEFAULT_PERIOD || end < (first ?? last)) return wholeMonths(resolve(view, last));
  return { start: firstOfMonth(end), end };
}

/** The dates before (−1) or after (1): as many whole months where these are whole months, else as many days. */
export function shifted({ start, end }: Dates, by: -1 | 1): Dates {
  if (start === firstOfMonth(start) && end === lastOfMonth(end)) {
    const months = monthsOf(start, end).length * by;
    return { start: addMonths(start, months), end: lastOfMonth(addMonths(end, months)) };
  }
  const days = length(start, end) * by;
  return { start: add(start, days), end: add(end, days) };
}
