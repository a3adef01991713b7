import { memo, useRef } from "preact/compat";
import type { DayState } from "../api/shapes";
import { type Day, weekday } from "../calendar/days";
import { month, spoken } from "../format/days";
import { money } from "../format/money";
import { pixels, type Units } from "../money/money";
import { useRoving } from "../ui/roving";
import { say } from "../words/say";
import { usePointed } from "./pointed";

export interface CalendarDay {
  date: Day;
  amount: Units | null;
  state: DayState;
  href: string;
}

export const STATES: Record<DayState, string> = {
  equal: say("equal to the bill"),
  differs: say("differs from the bill"),
  pending: say("pending"),
  none: say("no bill yet"),
};

const WEEK = say("M T W T F S S [the days of a week]").split(" ");

/** Months of days: the stronger the colour, the higher the cost; the mark is the state. Arrow keys walk. */
export function Calendar({ days, currency }: { days: readonly CalendarDay[]; currency: string }) {
  const [pointed, point] = usePointed();
  const heat = heats(days);
  const months = Map.groupBy(days, (each) => each.date.slice(0, 7));
  const last = days.length - 1;
  const steps = { left: -1, right: 1, up: -7, down: 7, first: -last, last };
  const box = useRef<HTMLDivElement>(null);
  const { current, onKeyDown } = useRoving(box, days.length, last, (from, to) => from + steps[to]);
  const place = new Map(days.map((each, n) => [each.date, n]));

  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: the keys belong to the links inside
    <div
      className="months"
      ref={box}
      onKeyDown={onKeyDown}
      onPointerOver={({ target }) => {
        const day = target instanceof Element && target.closest("[data-day]")?.getAttribute("data-day");
        point(day ? { start: day, end: day } : null);
      }}
      onPointerLeave={() => point(null)}
    >
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
                <DayLink
                  day={each}
                  tone={each.amount === null ? "none" : `h${heat(each.amount)}`}
                  part={place.get(each.date)}
                  isCurrent={place.get(each.date) === current}
                  isPointed={pointed !== null && pointed.start <= each.date && each.date <= pointed.end}
                  currency={currency}
                />
              </li>
            ))}
          </ol>
        </div>
      ))}
    </div>
  );
}

interface DayProps {
  day: CalendarDay;
  tone: string;
  part: number | undefined;
  isCurrent: boolean;
  isPointed: boolean;
  currency: string;
}

/** Drawn again only if it changes itself: pointing walks over many days. */
const DayLink = memo(function DayLink({ day, tone, part, isCurrent, isPointed, currency }: DayProps) {
  const text = said(day, currency);
  return (
    <a
      className={`day ${tone} ${day.state} ${isPointed ? "pointed" : ""}`}
      href={day.href}
      data-day={day.date}
      data-part={part}
      tabIndex={isCurrent ? 0 : -1}
      title={text}
    >
      {Number(day.date.slice(8))}
      <span className="sr">: {text}</span>
    </a>
  );
});

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
