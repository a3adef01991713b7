/** An instant in UTC as the API writes it, such as `2026-11-15T12:00:00Z`; a fraction of a second may follow. */
const MOMENT = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,6})?Z$/;

export function isMoment(text: string): boolean {
  return MOMENT.test(text) && !Number.isNaN(Date.parse(text));
}

/** What a field for date and time holds, `2026-11-15T12:00` with or without seconds, as an instant in UTC; null if it is none. */
export function fromField(text: string): string | null {
  const whole = /T\d{2}:\d{2}$/.test(text) ? `${text}:00Z` : `${text}Z`;
  return isMoment(whole) ? whole : null;
}

/** An instant as a field for date and time takes it, to the second. A later second is no other moment than it says. */
export function toField(moment: string | null): string {
  return moment?.slice(0, 19) ?? "";
}
