import { useEffect, useId, useState } from "preact/compat";
import { go, useHere } from "../../app/router";
import { add, length } from "../../calendar/days";
import { brief, spoken } from "../../format/days";
import { useLater } from "../../ui/later";
import type { Dates } from "../../url/period";
import { extra } from "../../url/view";
import { say } from "../../words/say";

/** The day of a view's address that lies in its period, or null for the whole period. */
export function dayOf(day: string | undefined, { start, end }: Dates): string | null {
  return day !== undefined && day >= start && day <= end ? day : null;
}

/** Walk through the days of the period one by one, or see all of them together. */
export function DaySlider({ period, day }: { period: Dates; day: string | null }) {
  const here = useHere();
  const id = useId();
  const last = length(period.start, period.end) - 1;
  // The day that the thumb is on, until it rests there and the address says it.
  const [moved, setMoved] = useState<string | null>(null);
  const rested = useLater(moved, 120);
  const shown = moved ?? day;
  useEffect(() => {
    if (rested === null || rested !== moved) return;
    go(here.to(extra(here.view, "day", rested)), { replace: true });
    setMoved(null);
  }, [rested, moved, here]);
  if (last < 1) return null;
  return (
    <div className="slider">
      <nav className="segments" aria-label={say("Days of the map")}>
        <a
          href={here.to(extra(here.view, "day", null))}
          data-replace=""
          aria-current={shown === null ? "true" : undefined}
          onClick={() => setMoved(null)}
        >
          {say("All {n} days", { n: last + 1 })}
        </a>
      </nav>
      <label htmlFor={id}>{say("Day by day")}</label>
      <span className="num quiet small">{brief(period.start)}</span>
      <input
        id={id}
        type="range"
        min={0}
        max={last}
        value={shown === null ? last : length(period.start, shown) - 1}
        aria-valuetext={shown === null ? say("All days") : spoken(shown)}
        onChange={(event) => setMoved(add(period.start, Number(event.currentTarget.value)))}
      />
      <span className="num quiet small">{brief(period.end)}</span>
      <output className="num" htmlFor={id}>
        {shown === null ? "" : spoken(shown)}
      </output>
    </div>
  );
}
