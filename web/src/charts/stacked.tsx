import { area, line, stack, stackOffsetDiverging } from "d3-shape";
import { type PointerEvent, useId, useMemo, useState } from "react";
import { brief } from "../format/days";
import { short } from "../format/money";
import { pixels, type Units } from "../money/money";
import { linear, ticks } from "./scale";
import { useWidth } from "./width";

export interface Band {
  key: string;
  name: string;
  colour: string;
  amounts: readonly Units[];
}

interface Props {
  times: readonly string[];
  /** From the bottom to the top. */
  bands: readonly Band[];
  before: readonly (Units | null)[] | null;
  currency: string;
  /** The band that is pointed at elsewhere. */
  lit: string | null;
  /** What a reader hears of one time. */
  describe: (index: number) => string;
  tip: (index: number) => React.ReactNode;
  onZoom: (first: number, last: number) => void;
}

const HEIGHT = 296;
const PAD = { top: 10, right: 2, bottom: 22, left: 46 };

/** Stacked areas over time, with the total of the period before as a dotted line. Straight between what is known. */
export function Stacked({ times, bands, before, currency, lit, describe, tip, onZoom }: Props) {
  const [frame, width] = useWidth<HTMLDivElement>(160, 640);
  const [at, setAt] = useState<number | null>(null);
  const [drag, setDrag] = useState<number | null>(null);
  const shape = useMemo(() => geometry(times, bands, before, width), [times, bands, before, width]);
  const label = useId();
  const last = times.length - 1;

  const index = (event: PointerEvent<HTMLElement>) => {
    const box = event.currentTarget.getBoundingClientRect();
    const part = (event.clientX - box.left - PAD.left) / (box.width - PAD.left - PAD.right);
    const steps = shape.bars ? Math.floor(part * times.length) : Math.round(part * last);
    return Math.max(0, Math.min(last, steps));
  };
  const lift = (event: PointerEvent<HTMLElement>) => {
    if (drag === null) return;
    const end = index(event);
    setDrag(null);
    onZoom(Math.min(drag, end), Math.max(drag, end));
  };
  const x = at === null ? 0 : shape.x(at);

  return (
    <div className={`chart ${lit ? "lit" : ""}`} ref={frame}>
      <div
        className="plot"
        onPointerMove={(event) => setAt(index(event))}
        onPointerLeave={() => {
          setAt(null);
          setDrag(null);
        }}
        onPointerDown={(event) => event.button === 0 && event.pointerType === "mouse" && setDrag(index(event))}
        onPointerUp={lift}
      >
        <svg viewBox={`0 0 ${width} ${HEIGHT}`} height={HEIGHT} aria-hidden="true">
          {shape.ticks.map((tick) => (
            <g key={tick} transform={`translate(0 ${shape.y(tick)})`}>
              <line className="grid" x1={PAD.left} x2={width - PAD.right} />
              <text x={PAD.left - 8} dy="0.32em" textAnchor="end">
                {short(tick, currency)}
              </text>
            </g>
          ))}
          {shape.paths.map((path, n) => (
            <path
              key={bands[n]?.key}
              className={`area ${bands[n]?.colour} ${lit === bands[n]?.key ? "on" : ""}`}
              d={path}
            />
          ))}
          {shape.before && <path className="before" d={shape.before} />}
          {shape.labels.map((n) => (
            <text
              key={n}
              x={shape.x(n)}
              y={HEIGHT - 4}
              textAnchor={n === 0 && !shape.bars ? "start" : n === last && !shape.bars ? "end" : "middle"}
            >
              {brief(times[n] ?? "")}
            </text>
          ))}
          {at !== null && drag !== null && (
            <rect
              className="brush"
              x={Math.min(shape.x(drag), x)}
              width={Math.abs(x - shape.x(drag))}
              y={PAD.top}
              height={HEIGHT - PAD.top - PAD.bottom}
            />
          )}
          {at !== null && <line className="cursor" x1={x} x2={x} y1={PAD.top} y2={HEIGHT - PAD.bottom} />}
        </svg>
        <label className="sr" htmlFor={label}>
          Read the chart day by day
        </label>
        <input
          id={label}
          type="range"
          min={0}
          max={Math.max(last, 0)}
          value={at ?? last}
          aria-valuetext={describe(at ?? last)}
          onChange={(event) => setAt(Number(event.target.value))}
          onFocus={(event) => event.target.matches(":focus-visible") && setAt(at ?? last)}
          onBlur={() => setAt(null)}
          onKeyDown={(event) => event.key === "Enter" && at !== null && onZoom(at, at)}
        />
      </div>
      {at !== null && (
        <div className="tip" style={x > width / 2 ? { right: width - x + 12 } : { left: x + 12 }}>
          {tip(at)}
        </div>
      )}
    </div>
  );
}

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
