/** Calendar days, with which one can calculate before there are words for them. */
const DAY = 86_400_000;

/** A calendar day is a text, `2026-11-15`, and has no hour. */
export type Day = string;

export function utc(day: Day): Date {
  return new Date(`${day.slice(0, 10)}T00:00:00Z`);
}

export function isDay(text: string): boolean {
  return /^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(utc(text).getTime()) && add(text, 0) === text;
}

export function add(day: Day, days: number): Day {
  return new Date(utc(day).getTime() + days * DAY).toISOString().slice(0, 10);
}

/** How many days lie from one day to another, both counted. */
export function length(start: Day, end: Day): number {
  return Math.round((utc(end).getTime() - utc(start).getTime()) / DAY) + 1;
}

export function weekday(day: Day): number {
  return (utc(day).getUTCDay() + 6) % 7;
}

export function firstOfMonth(day: Day): Day {
  return `${day.slice(0, 7)}-01`;
}

export function lastOfMonth(day: Day): Day {
  const date = utc(firstOfMonth(day));
  return new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + 1, 0)).toISOString().slice(0, 10);
}

/** The first day of the month that lies so many months later, or earlier. */
export function addMonths(day: Day, months: number): Day {
  const date = utc(firstOfMonth(day));
  return new Date(Date.UTC(date.getUTCFullYear(), date.getUTCMonth() + months, 1)).toISOString().slice(0, 10);
}

/** The first days of all months from one day to another. */
export function monthsOf(start: Day, end: Day): Day[] {
  const months: Day[] = [];
  for (let at = firstOfMonth(start); at <= end; at = addMonths(at, 1)) months.push(at);
  return months;
}
