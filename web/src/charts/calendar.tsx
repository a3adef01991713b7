import { type KeyboardEvent, useRef, useState } from "react";
import type { DayState } from "../api/shapes";
import { type Day, month, spoken, weekday } from "../format/days";
import { money } from "../format/money";
import { pixels, type Units } from "../money/money";

export interface CalendarDay {
  date: Day;
  amount: Units | null;
  state: DayState;
  href: string;
}

export const STATES: Record<DayState, string> = {
  equal: "equal to the bill",
  differs: "differs from the bill",
  pending: "pending",
  none: "no bill yet",
};

const WEEK = ["M", "T", "W", "T", "F", "S", "S"];

/** Months of days: the stronger the colour, the higher the cost; the mark is the state. Arrow keys walk. */
export function Calendar({ days, currency }: { days: readonly CalendarDay[]; currency: string }) {
  const [walked, setWalked] = useState<string | null>(null);
  const box = useRef<HTMLDivElement>(null);
  const heat = heats(days);
  const months = Map.groupBy(days, (each) => each.date.slice(0, 7));
  const current = days.some((each) => each.date === walked) ? walked : days.at(-1)?.date;

  const walk = (event: KeyboardEvent) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -7, ArrowDown: 7, Home: -1e6, End: 1e6 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const from = days.findIndex((each) => each.date === current);
    const to = days[Math.max(0, Math.min(days.length - 1, from + step))];
    if (!to) return;
    setWalked(to.date);
    box.current?.querySelector<HTMLElement>(`[data-day="${to.date}"]`)?.focus();
  };

  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the keys belong to the links inside
    <div className="months" ref={box} onKeyDown={walk}>
      {[...months].map(([key, list]) => (
        <div className="month" key={key}>
          <h3>{month(`${key}-01`)}</h3>
          <ol>
            {WEEK.map((name, n) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: the days of a week stay where they are
              <li key={n} className="wd" aria-hidden="true">
                {name}
              </li>
            ))}
            {list.map((each, n) => (
              <li key={each.date} style={n === 0 ? { gridColumnStart: weekday(each.date) + 1 } : undefined}>
                <a
                  className={`day ${each.amount === null ? "none" : `h${heat(each.amount)}`} ${each.state}`}
                  href={each.href}
                  data-day={each.date}
                  tabIndex={each.date === current ? 0 : -1}
                  title={said(each, currency)}
                >
                  {Number(each.date.slice(8))}
                  <span className="sr">: {said(each, currency)}</span>
                </a>
              </li>
            ))}
          </ol>
        </div>
      ))}
    </div>
  );
}

function said(day: CalendarDay, currency: string): string {
  const amount = day.amount === null ? "" : `, ${money(day.amount, currency)}`;
  return `${spoken(day.date)}${amount}, ${STATES[day.state]}`;
}

/** From 1 to 5, between the least and the most of the days that have a cost. */
export function heats(days: readonly { amount: Units | null }[]): (amount: Units) => number {
  const sizes = days.flatMap((each) => (each.amount === null ? [] : [pixels(each.amount)]));
  const [low, high] = [Math.min(...sizes), Math.max(...sizes)];
  return (amount) => (high > low ? Math.min(5, 1 + Math.floor(((pixels(amount) - low) / (high - low)) * 5)) : 3);
}
