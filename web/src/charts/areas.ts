import { area, line, stack, stackOffsetDiverging } from "d3-shape";
import { pixels, type Units } from "../money/money";
import { linear, ticks } from "./scale";

export interface Band {
  key: string;
  name: string;
  colour: string;
  amounts: readonly Units[];
}

export const HEIGHT = 296;
export const PAD = { top: 10, right: 2, bottom: 22, left: 46 };

/** Where the bands of a stacked chart lie, its axes, and the line of the period before. */
export function geometry(
  times: readonly string[],
  bands: readonly Band[],
  before: readonly (Units | null)[] | null,
  width: number,
) {
  const layers = stack<number, Band>()
    .keys(bands)
    .offset(stackOffsetDiverging)
    .value((index, band) => pixels(band.amounts[index] ?? 0n))(times.map((_, index) => index));
  const earlier = (before ?? []).slice(0, times.length).map((each) => (each === null ? null : pixels(each)));
  const edges = layers
    .flatMap((layer) => layer.map(([low, high]) => Math.min(low, high)))
    .concat(layers.flatMap((layer) => layer.map(([, high]) => high)));
  const known = [...edges, ...earlier.filter((each) => each !== null)];
  const marks = ticks(Math.min(0, ...known), Math.max(0, ...known));
  const y = linear([marks[0] ?? 0, marks.at(-1) || 1], [HEIGHT - PAD.bottom, PAD.top]);
  const bars = times.length === 1;
  const inner: [number, number] = [PAD.left, width - PAD.right];
  const x = bars ? () => (inner[0] + inner[1]) / 2 : linear([0, times.length - 1], inner);
  const shape = area<[number, number]>()
    .x((_, index) => x(index))
    .y0(([low]) => y(low))
    .y1(([, high]) => y(high));
  const half = Math.min(60, (inner[1] - inner[0]) / 3);
  const paths = layers.map((layer) => {
    const points = layer.map(([low, high]): [number, number] => [low, high]);
    if (!bars) return shape(points) ?? "";
    const [low, high] = points[0] ?? [0, 0];
    return `M${x(0) - half} ${y(low)}H${x(0) + half}V${y(high)}H${x(0) - half}Z`;
  });
  const dotted = line<number | null>()
    .defined((each) => each !== null)
    .x((_, index) => x(index))
    .y((each) => y(each ?? 0));
  const step = Math.max(1, Math.ceil(times.length / Math.max(2, Math.floor(width / 84))));
  const labels = times
    .map((_, index) => index)
    .filter(
      (index) =>
        index % step === 0 && (index === 0 || times.length - 1 - index >= step * 0.6 || index === times.length - 1),
    );
  return { x, y, bars, paths, ticks: marks, labels, before: bars || earlier.length < 2 ? null : dotted(earlier) };
}
