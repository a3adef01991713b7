import { type FormEvent, useId } from "preact/compat";
import { go, useHere } from "../app/router";
import { isDay } from "../calendar/days";
import { brief, range } from "../format/days";
import type { Dates } from "../url/period";
import { DEFAULT_PERIOD, during, type View } from "../url/view";
import { say } from "../words/say";
import { Popover } from "./popover";

const PERIODS: readonly [string, string][] = [
  ["7d", say("Last 7 days")],
  ["30d", say("Last 30 days")],
  ["90d", say("Last 90 days")],
  ["week", say("This week")],
  ["last-week", say("Last week")],
  ["month", say("This month")],
  ["last-month", say("Last month")],
  ["quarter", say("This quarter")],
  ["last-quarter", say("Last quarter")],
  ["year", say("This year")],
  ["last-year", say("Last year")],
];

/** What a period can be compared with: in the address, in the menu, and behind "vs". */
const COMPARISONS: readonly [string, string, string][] = [
  ["previous", say("The period before"), say("the period before")],
  ["year", say("The year before"), say("the year before")],
  ["none", say("Nothing"), say("nothing")],
];

/** What the period of a view is called. */
function named(view: View): string {
  if (view.start && view.end) return range(view.start, view.end);
  const found = PERIODS.find(([key]) => key === view.period);
  return found ? found[1] : (view.period ?? "");
}

interface PeriodProps {
  /** Its dates, as soon as they are known. */
  dated: Dates | null;
  last: string | null;
  /** What the usual period is called, where it is another one. */
  usual?: string | undefined;
}

/** Choose the period. */
export function PeriodButton({ dated, last, usual }: PeriodProps) {
  const here = useHere();
  const { view } = here;
  const label = dated ? range(dated.start, dated.end) : named(view);
  return (
    <span className="when" data-start={dated?.start} data-end={dated?.end}>
      <Popover name={say("Period")} icon="calendar" shortcut="period" label={label}>
        {(close) => (
          <>
            <ul>
              {PERIODS.map(([key, text]) => (
                <li key={key}>
                  <a
                    href={here.to({ ...view, period: key, start: null, end: null })}
                    aria-current={view.period === key ? "true" : undefined}
                    onClick={close}
                  >
                    {key === DEFAULT_PERIOD && usual ? usual : text}
                  </a>
                </li>
              ))}
            </ul>
            {last && <h3>{say("Up to {day}, the last calculated day", { day: brief(last) })}</h3>}
            <hr />
            <DatesForm
              label={say("Show these days")}
              start={dated?.start}
              end={dated?.end}
              onChoose={(start, end) => {
                close();
                go(here.to(during(view, start, end)));
              }}
            />
          </>
        )}
      </Popover>
    </span>
  );
}

/** Choose what the period is compared with. */
export function CompareButton({ shown }: { shown: Dates | null }) {
  const here = useHere();
  const { view } = here;
  const chosen = COMPARISONS.find(([key]) => key === view.compare)?.[2] ?? say("other days");
  const period = shown && view.compare !== "none" ? range(shown.start, shown.end) : chosen;
  return (
    <span className="when">
      <Popover
        name={say("Compare with")}
        plain
        label={<span>{say("vs {period}", { period: <b className="wide-weight">{period}</b> })}</span>}
      >
        {(close) => (
          <>
            <ul>
              {COMPARISONS.map(([key, label]) => (
                <li key={key}>
                  <a
                    href={here.to({ ...view, compare: key })}
                    aria-current={view.compare === key ? "true" : undefined}
                    onClick={close}
                  >
                    {label}
                  </a>
                </li>
              ))}
            </ul>
            <hr />
            <DatesForm
              label={say("Compare with these days")}
              start={shown?.start}
              end={shown?.end}
              onChoose={(start, end) => {
                close();
                go(here.to({ ...view, compare: `${start}..${end}` }));
              }}
            />
          </>
        )}
      </Popover>
    </span>
  );
}

interface DatesProps {
  label: string;
  start: string | undefined;
  end: string | undefined;
  onChoose: (start: string, end: string) => void;
}

function DatesForm({ label, start, end, onChoose }: DatesProps) {
  const id = useId();
  const choose = (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const data = new FormData(event.currentTarget);
    const [from = "", to = ""] = [String(data.get("start")), String(data.get("end"))].sort();
    if (isDay(from) && isDay(to)) onChoose(from, to);
  };
  return (
    <form onSubmit={choose}>
      <div>
        <label htmlFor={`${id}-start`}>
          {say("From [a day]")}
          <input className="field" id={`${id}-start`} name="start" type="date" defaultValue={start} required />
        </label>
        <label htmlFor={`${id}-end`}>
          {say("To [a day]")}
          <input className="field" id={`${id}-end`} name="end" type="date" defaultValue={end} required />
        </label>
      </div>
      <button type="submit" className="button">
        {label}
      </button>
    </form>
  );
}
