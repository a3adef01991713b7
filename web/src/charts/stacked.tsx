import { type PointerEvent, useId, useMemo, useState } from "react";
import { brief } from "../format/days";
import { short } from "../format/money";
import { at as timeAt, type Units } from "../money/money";
import { type Band, geometry, HEIGHT, PAD } from "./areas";
import { useWidth } from "./width";

interface Props {
  times: readonly string[];
  /** From the bottom to the top. */
  bands: readonly Band[];
  before: readonly (Units | null)[] | null;
  /** What may be spent at each time, if that is known. */
  limit: readonly (Units | null)[] | null;
  /** The times on which something stands out. */
  marked: (time: string) => boolean;
  currency: string;
  /** The band that is pointed at elsewhere. */
  lit: string | null;
  /** What a reader hears of one time. */
  describe: (index: number) => string;
  tip: (index: number) => React.ReactNode;
  onZoom: (first: string, last: string) => void;
}

/** Stacked areas over time, with the total of the period before as a dotted line and a budget as a dashed one. Straight
 * between what is known. */
export function Stacked({ times, bands, before, limit, marked, currency, lit, describe, tip, onZoom }: Props) {
  const [frame, width] = useWidth<HTMLDivElement>(160, 640);
  // Days, not places: while other days come, what was pointed at may be at another place, or gone.
  const [pointed, setPointed] = useState<string | null>(null);
  const [dragged, setDragged] = useState<string | null>(null);
  const [at, drag] = [placeOf(pointed, times), placeOf(dragged, times)];
  const shape = useMemo(() => geometry(times, bands, before, width, limit), [times, bands, before, width, limit]);
  const label = useId();
  const last = times.length - 1;
  if (last < 0) return null;

  const under = (event: PointerEvent<HTMLElement>) => {
    const box = event.currentTarget.getBoundingClientRect();
    const part = (event.clientX - box.left - PAD.left) / (box.width - PAD.left - PAD.right);
    const steps = shape.bars ? Math.floor(part * times.length) : Math.round(part * last);
    return timeAt(times, Math.max(0, Math.min(last, steps)));
  };
  const lift = (event: PointerEvent<HTMLElement>) => {
    if (drag === null) return;
    const end = times.indexOf(under(event));
    setDragged(null);
    onZoom(timeAt(times, Math.min(drag, end)), timeAt(times, Math.max(drag, end)));
  };
  const x = at === null ? 0 : shape.x(at);

  return (
    <div className={`chart ${lit ? "lit" : ""}`} ref={frame}>
      <div
        className="plot"
        onPointerMove={(event) => setPointed(under(event))}
        onPointerLeave={() => {
          setPointed(null);
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
          {shape.limit && <path className="limit" d={shape.limit} />}
          {times.map((time, n) =>
            marked(time) ? <path key={time} className="mark" d={`M${shape.x(n)} ${PAD.top + 7}l-5 -8h10z`} /> : null,
          )}
          {shape.labels.map((n) => (
            <text
              key={n}
              x={shape.x(n)}
              y={HEIGHT - 4}
              textAnchor={n === 0 && !shape.bars ? "start" : n === last && !shape.bars ? "end" : "middle"}
            >
              {brief(timeAt(times, n))}
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
          max={last}
          value={at ?? last}
          aria-valuetext={describe(at ?? last)}
          onChange={(event) => setPointed(timeAt(times, Number(event.target.value)))}
          onFocus={(event) => event.target.matches(":focus-visible") && setPointed(timeAt(times, at ?? last))}
          onBlur={() => setPointed(null)}
          onKeyDown={(event) => event.key === "Enter" && pointed !== null && at !== null && onZoom(pointed, pointed)}
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

/** Where a time is; null if it is not there. */
function placeOf(time: string | null, times: readonly string[]): number | null {
  const place = time === null ? -1 : times.indexOf(time);
  return place < 0 ? null : place;
}
