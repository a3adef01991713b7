import { area, line } from "d3-shape";
import { at, pixels, type Units } from "../money/money";
import { linear, ticks } from "./scale";

export interface Band {
  key: string;
  name: string;
  colour: string;
  amounts: readonly Units[];
}

export const HEIGHT = 296;
export const PAD = { top: 10, right: 2, bottom: 22, left: 46 };

type Edge = [from: number, to: number];
const NONE: readonly number[] = [];

/** The edges of each band, above zero and, where it has refunds, below. A band is as high as its amount on every day: it
 * lies on those before it, also on a day on which it has nothing. */
function layersOf(days: number, bands: readonly Band[]): Edge[][][] {
  const tops = { above: new Array<number>(days).fill(0), below: new Array<number>(days).fill(0) };
  return bands.map(({ amounts }) => {
    const sizes = tops.above.map((_, day) => pixels(at(amounts, day)));
    const side = (ends: number[], part: (size: number) => number) =>
      sizes.map((size, day): Edge => {
        const from = at(ends, day);
        ends[day] = from + part(size);
        return [from, at(ends, day)];
      });
    const above = side(tops.above, (size) => Math.max(0, size));
    return sizes.some((size) => size < 0) ? [above, side(tops.below, (size) => Math.min(0, size))] : [above];
  });
}

/** Where the bands of a stacked chart lie, its axes, the line of the period before, and that of what may be spent. */
export function geometry(
  times: readonly string[],
  bands: readonly Band[],
  before: readonly (Units | null)[] | null,
  width: number,
  limit: readonly (Units | null)[] | null = null,
) {
  const layers = layersOf(times.length, bands);
  const [earlier, most] = [before, limit].map((amounts) =>
    amounts?.slice(0, times.length).map((each) => (each === null ? null : pixels(each))),
  );
  const lines = [earlier, most].flatMap((each) => each?.filter((each) => each !== null) || NONE);
  const known = [...layers.flat(3), ...lines];
  const [low, high] = [Math.min(0, ...known), Math.max(0, ...known)];
  const marks = ticks(low, high);
  const y = linear([low, marks.at(-1) || 1], [HEIGHT - PAD.bottom, PAD.top]);
  const bars = times.length === 1;
  const inner: [number, number] = [PAD.left, width - PAD.right];
  const x = bars ? () => (inner[0] + inner[1]) / 2 : linear([0, times.length - 1], inner);
  const shape = area<Edge>()
    .x((_, index) => x(index))
    .y0(([low]) => y(low))
    .y1(([, high]) => y(high));
  const half = Math.min(60, (inner[1] - inner[0]) / 3);
  const bar = ([low, high]: Edge) => `M${x(0) - half} ${y(low)}H${x(0) + half}V${y(high)}H${x(0) - half}Z`;
  const paths = layers.map((sides) => sides.map((side) => (bars ? side.map(bar).join("") : shape(side))).join(""));
  const dotted = line<number | null>()
    .defined((each) => each !== null)
    .x((_, index) => x(index))
    .y((each) => (each === null ? Number.NaN : y(each)));
  const step = Math.max(1, Math.ceil(times.length / Math.max(2, Math.floor(width / 84))));
  const labels = times
    .map((_, index) => index)
    .filter(
      (index) =>
        index % step === 0 && (index === 0 || times.length - 1 - index >= step * 0.6 || index === times.length - 1),
    );
  return {
    x,
    y,
    bars,
    paths,
    ticks: marks,
    labels,
    before: bars || !earlier || earlier.length < 2 ? null : dotted(earlier),
    limit: bars || !most || most.length < 2 ? null : dotted(most),
  };
}
