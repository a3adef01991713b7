// Tests of the browser use this module without a bundler: Node needs the endings of what it imports.
import { add, type Day, firstOfMonth, utc } from "../calendar/days.ts";
import { say } from "../words/say.ts";
import { formats } from "./formats.ts";

const MONTHS = say("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec").split(" ");
const LONG = say("January February March April May June July August September October November December").split(" ");
const WEEKDAYS = say("Sun Mon Tue Wed Thu Fri Sat").split(" ");
const hasPoints = () => formats.dates === "14.11.2026";
const isIso = () => formats.dates === "2026-11-14";

/** Whether the year of a range is written at its end only. */
function isSaidOnce(start: Day, end: Day): boolean {
  return start.slice(0, 4) === end.slice(0, 4) && !isIso();
}

/** `15 Nov`, `15.11.` or `11-15` */
export function brief(day: Day): string {
  if (isIso()) return day.slice(5, 10);
  if (hasPoints()) return `${day.slice(8, 10)}.${day.slice(5, 7)}.`;
  const date = utc(day);
  return say("{day} {month}", { day: date.getUTCDate(), month: MONTHS[date.getUTCMonth()] ?? "" });
}

/** `15 Nov 2026`, `15.11.2026` or `2026-11-15` */
export function full(day: Day): string {
  if (isIso()) return day.slice(0, 10);
  return `${brief(day)}${hasPoints() ? "" : " "}${day.slice(0, 4)}`;
}

/** `Sun, 15 November 2026`, `Sun, 15.11.2026` or `Sun, 2026-11-15` */
export function spoken(day: Day): string {
  const date = utc(day);
  const long = isIso() || hasPoints() ? full(day) : say("{day} {month}", { day: date.getUTCDate(), month: month(day) });
  return `${WEEKDAYS[date.getUTCDay()]}, ${long}`;
}

/** `17 Oct – 15 Nov 2026`, `17.10. – 15.11.2026` or `2026-10-17 – 2026-11-15` */
export function range(start: Day, end: Day): string {
  if (start === end) return full(start);
  return `${isSaidOnce(start, end) ? brief(start) : full(start)} – ${full(end)}`;
}

/** `November 2026`, of a day or of the id of a month, `2026-11`. A month alone is a word, as in the service's documents,
 * unless days are written by ISO 8601, which writes months, too. */
export function month(day: Day): string {
  if (isIso()) return day.slice(0, 7);
  return `${LONG[utc(firstOfMonth(day)).getUTCMonth()]} ${day.slice(0, 4)}`;
}

/** `October – November 2026` or `2026-10 – 2026-11` */
export function monthRange(start: Day, end: Day): string {
  if (start.slice(0, 7) === end.slice(0, 7)) return month(start);
  const first = isSaidOnce(start, end) ? (month(start).split(" ")[0] ?? "") : month(start);
  return `${first} – ${month(end)}`;
}

/** ` from 1 Mar 2026`, ` to 28 Feb 2026`, or both, with a space before each; nothing for what holds for ever. The last
 * day is part of it, while `valid_to` is the day after. */
export function inTime({ valid_from, valid_to }: { valid_from?: Day | null; valid_to?: Day | null }): string {
  const from = valid_from && full(valid_from);
  const to = valid_to && full(add(valid_to, -1));
  if (from && to) return say(" from {from} to {to}", { from, to });
  if (from) return say(" from {from}", { from });
  return to ? say(" to {to}", { to }) : "";
}

/** `21 Nov 2026, 20:04 UTC` */
export function instant(text: string): string {
  const at = new Date(text).toISOString();
  return `${full(at)}, ${at.slice(11, 16)} UTC`;
}
