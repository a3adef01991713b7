import { type PointerEvent, type ReactNode, useId, useMemo, useState } from "preact/compat";
import { brief } from "../format/days";
import { percent, short } from "../format/money";
import { at } from "../money/money";
import type { Dates } from "../url/period";
import { say } from "../words/say";
import { geometry, HEIGHT, PAD, type Plot } from "./areas";
import { usePointed } from "./pointed";
import { useWidth } from "./width";

/** What days can be marked with: something stands out, they were restated, or somebody has noted something. */
export const MARKS = ["stands-out", "restated", "note"] as const;
export type MarkKind = (typeof MARKS)[number];
/** Each kind has a shape of its own, so that it can be told without colours. */
const SHAPES: Record<MarkKind, string> = {
  "stands-out": "l-5 -8h10z",
  restated: "l-4.500 -4.500l4.500 -4.500l4.500 4.500z",
  note: "a4 4 0 1 1 .01 0z",
};
/** How far marks of one place are from each other. */
const STEP = 11;

interface Props {
  /** The days of each place, both included. */
  places: readonly Dates[];
  plot: Plot;
  /** The kinds of marks that a place has. */
  marked: (index: number) => readonly MarkKind[];
  currency: string;
  /** The band that is pointed at elsewhere. */
  lit: string | null;
  /** What a reader hears of one place. */
  describe: (index: number) => string;
  tip: (index: number) => ReactNode;
  onZoom: (first: number, last: number) => void;
}

/** Costs over time, with the total of the period before as a dotted line, a budget as a dashed one, and what is expected
 * as a cone. Straight between what is known. */
export function TimeChart({ places, plot, marked, currency, lit, describe, tip, onZoom }: Props) {
  const [frame, width] = useWidth<HTMLDivElement>(160, 640);
  // Days, not places: while other days come, what was pointed at may be at another place, or gone.
  const [pointed, point] = usePointed();
  const [dragged, setDragged] = useState<Dates | null>(null);
  const [place, drag] = [placeOf(pointed, places), placeOf(dragged, places)];
  const shape = useMemo(() => geometry(plot, width), [plot, width]);
  const label = useId();
  const last = places.length - 1;
  if (last < 0) return null;

  const under = (event: PointerEvent<HTMLElement>) => {
    const box = event.currentTarget.getBoundingClientRect();
    const part = (event.clientX - box.left - PAD.left) / (box.width - PAD.left - PAD.right);
    return at(places, shape.under(part));
  };
  const lift = (event: PointerEvent<HTMLElement>) => {
    if (drag === null) return;
    const end = places.indexOf(under(event));
    setDragged(null);
    onZoom(Math.min(drag, end), Math.max(drag, end));
  };
  const x = place === null ? 0 : shape.x(place);

  return (
    <div className={`chart ${lit ? "lit" : ""}`} ref={frame}>
      <div
        className="plot"
        onPointerMove={(event) => point(under(event))}
        onPointerLeave={() => {
          point(null);
          setDragged(null);
        }}
        onPointerDown={(event) => event.button === 0 && event.pointerType === "mouse" && setDragged(under(event))}
        onPointerUp={lift}
      >
        <svg viewBox={`0 0 ${width} ${HEIGHT}`} height={HEIGHT} aria-hidden="true">
          {shape.ticks.map((tick) => (
            <g key={tick} transform={`translate(0 ${shape.y(tick)})`}>
              <line className="grid" x1={PAD.left} x2={width - PAD.right} />
              <text x={PAD.left - 8} dy="0.32em" textAnchor="end">
                {shape.form === "shares" ? percent(tick / 100, 0) : short(tick, currency)}
              </text>
            </g>
          ))}
          {shape.ahead && <path className="likely" d={shape.ahead.range} />}
          {shape.paths.map((path, n) => {
            const band = at(plot.bands, n);
            const kind = shape.form === "lines" ? "stroke" : "area";
            return (
              <path key={band.key} className={`${kind} ${band.colour} ${lit === band.key ? "on" : ""}`} d={path} />
            );
          })}
          {shape.ahead && <path className="expected" d={shape.ahead.expected} />}
          {shape.before && <path className="before" d={shape.before} />}
          {shape.limit && <path className="limit" d={shape.limit} />}
          {places.map(({ start }, n) =>
            marked(n).map((kind, row) => (
              <path
                key={`${start} ${kind}`}
                className={`mark ${kind}`}
                d={`M${shape.x(n)} ${PAD.top + 7 + row * STEP}${SHAPES[kind]}`}
              />
            )),
          )}
          {shape.labels.map((n) => (
            <text
              key={n}
              x={shape.x(n)}
              y={HEIGHT - 4}
              textAnchor={
                n === 0 && !shape.bars ? "start" : n === last && !shape.bars && !shape.ahead ? "end" : "middle"
              }
            >
              {brief(at(places, n).start)}
            </text>
          ))}
          {place !== null && drag !== null && (
            <rect
              className="brush"
              x={Math.min(shape.x(drag), x)}
              width={Math.abs(x - shape.x(drag))}
              y={PAD.top}
              height={HEIGHT - PAD.top - PAD.bottom}
            />
          )}
          {place !== null && <line className="cursor" x1={x} x2={x} y1={PAD.top} y2={HEIGHT - PAD.bottom} />}
        </svg>
        <label className="sr" htmlFor={label}>
          {say("Read the chart day by day")}
        </label>
        <input
          id={label}
          type="range"
          min={0}
          max={last}
          value={place ?? last}
          aria-valuetext={describe(place ?? last)}
          onChange={(event) => point(at(places, Number(event.currentTarget.value)))}
          onFocus={(event) => event.currentTarget.matches(":focus-visible") && point(at(places, place ?? last))}
          onBlur={() => point(null)}
          onKeyDown={(event) => event.key === "Enter" && place !== null && onZoom(place, place)}
        />
      </div>
      {place !== null && (
        <div className="tip" style={x > width / 2 ? { right: width - x + 12 } : { left: x + 12 }}>
          {tip(place)}
        </div>
      )}
    </div>
  );
}

/** Where days are; null if they are not there. */
function placeOf(days: Dates | null, places: readonly Dates[]): number | null {
  const place = days ? places.findIndex(({ start, end }) => start <= days.start && days.start <= end) : -1;
  return place < 0 ? null : place;
}
