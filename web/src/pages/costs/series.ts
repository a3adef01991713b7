import type { Costs } from "../../api/shapes";
import { add, type Day, firstOfMonth, length, weekday } from "../../calendar/days";
import type { Ahead, Band } from "../../charts/areas";
import { at, read, sum, type Units } from "../../money/money";
import type { Drawing } from "../../url/drawing";

/** Costs over time, as a chart shows them. */
export interface Series {
  /** The days of each place, both included. */
  places: readonly { start: Day; end: Day }[];
  bands: readonly Band[];
  totals: readonly Units[];
  /** The total of the period before; null where nothing is known. */
  before: readonly (Units | null)[] | null;
  /** What may be spent. */
  limit: readonly (Units | null)[] | null;
}

/** The same costs in weeks or months, exactly added up, and each with all before it if they run. A week begins on Monday;
 * the first and the last place have the days of the period only. */
export function inSteps(series: Series, { step, running }: Drawing): Series {
  const groups = grouped(series.places, step);
  const lined = <T extends Units | null>(amounts: readonly T[]) => {
    const added = groups.map(([from, to]) => whole(amounts.slice(from, to + 1)) as T);
    return running ? accumulated(added) : added;
  };
  return {
    places: groups.map(([from, to]) => ({ start: at(series.places, from).start, end: at(series.places, to).end })),
    bands: series.bands.map((band) => ({ ...band, amounts: lined(band.amounts) })),
    totals: lined(series.totals),
    before: series.before && lined(series.before),
    limit: series.limit && lined(series.limit),
  };
}

/** The first and the last place of each week or month. */
function grouped(places: Series["places"], step: Drawing["step"]): [from: number, to: number][] {
  const groups: [from: number, to: number][] = [];
  let last = "";
  for (const [index, { start }] of places.entries()) {
    const key = step === "day" ? start : step === "week" ? add(start, -weekday(start)) : firstOfMonth(start);
    const group = groups.at(-1);
    if (group && key === last) group[1] = index;
    else groups.push([index, index]);
    last = key;
  }
  return groups;
}

/** All amounts together; null if one of them is not known, or there is none. */
function whole(amounts: readonly (Units | null)[]): Units | null {
  const known = amounts.filter((each) => each !== null);
  return known.length < amounts.length || known.length === 0 ? null : sum(known);
}

/** Each amount with all before it; null from the first on that is not known. */
function accumulated<T extends Units | null>(amounts: readonly T[]): T[] {
  let total: Units | null = 0n;
  return amounts.map((each) => {
    total = total === null || each === null ? null : total + each;
    return total as T;
  });
}

/** What is expected until the end of a month, where running costs of all its days until now are shown day by day: the next
 * days, of which only the last one says something. */
export function aheadOf({ places, totals }: Series, drawing: Drawing, forecast: Costs["forecast"]): Ahead | null {
  const [first, last, sofar] = [places[0], places.at(-1), totals.at(-1)];
  if (!forecast || !first || !last || sofar === undefined || !drawing.running || drawing.step !== "day") return null;
  if (drawing.form === "shares" || first.start !== firstOfMonth(forecast.until) || last.end !== forecast.actual_to)
    return null;
  if (sofar !== read(forecast.actual)) return null;
  const [low, expected, high] = [read(forecast.low), read(forecast.expected), read(forecast.high)];
  return { places: length(last.end, forecast.until) - 1, low, expected, high };
}
