import { area, line } from "d3-shape";
import { at, pixels, type Units } from "../money/money";
import type { Drawing } from "../url/drawing";
import { linear, ticks } from "./scale";

export interface Band {
  key: string;
  name: string;
  colour: string;
  amounts: readonly Units[];
}

/** What is expected so many places behind the last one. */
export interface Ahead {
  places: number;
  low: Units;
  expected: Units;
  high: Units;
}

/** What a chart over time shows, from the bottom to the top, with the lines above it. */
export interface Plot {
  form: Drawing["form"];
  /** How many places the chart has; each band has an amount at each. */
  places: number;
  bands: readonly Band[];
  before?: readonly (Units | null)[] | null;
  limit?: readonly (Units | null)[] | null;
  ahead?: Ahead | null;
}

export const HEIGHT = 296;
export const PAD = { top: 10, right: 2, bottom: 22, left: 46 };

const WHOLE = 100;
type Edge = [from: number, to: number];
const NONE: readonly number[] = [];

/** How high each band is at each place. Of shares, the parts of all that is not a refund. */
function sizesOf({ bands, places, form }: Plot): number[][] {
  const sizes = bands.map(({ amounts }) => Array.from({ length: places }, (_, place) => pixels(at(amounts, place))));
  if (form !== "shares") return sizes;
  const costs = sizes.map((own) => own.map((size) => Math.max(0, size)));
  const wholes = Array.from({ length: places }, (_, place) => costs.reduce((sum, own) => sum + at(own, place), 0));
  return costs.map((own) => own.map((size, place) => size && (size / at(wholes, place)) * WHOLE));
}

/** The edges of each band, above zero and, where it has refunds, below. A band is as high as its amount on every day: it
 * lies on those before it, also on a day on which it has nothing. */
function layersOf(all: readonly number[][], places: number): Edge[][][] {
  const tops = { above: new Array<number>(places).fill(0), below: new Array<number>(places).fill(0) };
  return all.map((sizes) => {
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

/** Where the bands of a chart lie, its axes, the line of the period before, that of what may be spent, and what is
 * expected. */
export function geometry(plot: Plot, width: number) {
  const { places, ahead = null } = plot;
  // One place is a bar, whatever the form: a line needs two.
  const form = places === 1 && plot.form !== "shares" ? "bars" : plot.form;
  const bars = form === "bars" || places === 1;
  const sizes = sizesOf(plot);
  const layers = layersOf(sizes, places);
  const [earlier, most] = [plot.before, plot.limit].map((amounts) =>
    form === "shares" ? undefined : amounts?.slice(0, places).map((each) => (each === null ? null : pixels(each))),
  );
  const expected = ahead && !bars ? [ahead.low, ahead.expected, ahead.high].map(pixels) : NONE;
  const lines = [earlier, most].flatMap((each) => each?.filter((each) => each !== null) || NONE);
  const known = [...(form === "lines" ? sizes.flat() : layers.flat(3)), ...lines, ...expected];
  const [low, high] = [Math.min(0, ...known), Math.max(0, ...known)];
  const marks = form === "shares" ? [0, 25, 50, 75, WHOLE] : ticks(low, high);
  const y = linear([low, marks.at(-1) || 1], [HEIGHT - PAD.bottom, PAD.top]);
  const inner: [number, number] = [PAD.left, width - PAD.right];
  const last = places - 1 + (ahead && !bars ? ahead.places : 0);
  const x = linear(bars ? [-0.5, places - 0.5] : [0, last], inner);
  const half = Math.min(60, ((inner[1] - inner[0]) / places) * (places === 1 ? 0.34 : 0.4));
  const bar = ([low, high]: Edge, place: number) =>
    low === high ? "" : `M${x(place) - half} ${y(low)}H${x(place) + half}V${y(high)}H${x(place) - half}Z`;
  const shape = area<Edge>()
    .x((_, index) => x(index))
    .y0(([low]) => y(low))
    .y1(([, high]) => y(high));
  const through = line<number | null>()
    .defined((each) => each !== null)
    .x((_, index) => x(index))
    .y((each) => (each === null ? Number.NaN : y(each)));
  const paths =
    form === "lines"
      ? sizes.map((own) => through(own) ?? "")
      : layers.map((sides) => sides.map((side) => (bars ? side.map(bar).join("") : shape(side))).join(""));
  const step = Math.max(1, Math.ceil((last + 1) / Math.max(2, Math.floor(width / 84))));
  const labels = Array.from({ length: places }, (_, index) => index).filter(
    (index) => index % step === 0 && (index === 0 || last - index >= step * 0.6 || index === last),
  );
  const drawn = (amounts: (number | null)[] | undefined) =>
    places === 1 || !amounts || amounts.length < 2 ? null : through(amounts);
  return {
    form,
    x,
    y,
    bars,
    paths,
    ticks: marks,
    labels,
    /** The place below a part of the width, from 0 to 1. */
    under: (part: number) => {
      const place = bars ? Math.floor(part * places) : Math.round(part * last);
      return Math.max(0, Math.min(places - 1, place));
    },
    before: drawn(earlier),
    limit: drawn(most),
    ahead: ahead && !bars ? coneOf(plot, ahead, x, y) : null,
  };
}

type Scale = (value: number) => number;

/** From the last total to all that is likely, and to what is expected. */
function coneOf({ bands, places }: Plot, { low, expected, high, places: more }: Ahead, x: Scale, y: Scale) {
  const now = bands.reduce((sum, { amounts }) => sum + pixels(at(amounts, places - 1)), 0);
  const [from, to] = [`M${x(places - 1)} ${y(now)}`, x(places - 1 + more)];
  return {
    range: `${from}L${to} ${y(pixels(low))}V${y(pixels(high))}Z`,
    expected: `${from}L${to} ${y(pixels(expected))}`,
  };
}
