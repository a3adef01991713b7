import { present } from "../../api/answer";
import { useAccess } from "../../api/me";
import { useOf, usePipeline, useTenant } from "../../api/questions";
import type { Costs, DayFacts, DayState } from "../../api/shapes";
import { useHere } from "../../app/router";
import { add } from "../../calendar/days";
import { Calendar, type CalendarDay, STATES } from "../../charts/calendar";
import { instant, range, spoken } from "../../format/days";
import { ungrouped } from "../../format/formats";
import { exact } from "../../format/money";
import { read, sum, write } from "../../money/money";
import { Amount, Card } from "../../ui/card";
import { billingFile } from "../../ui/csv";
import { Fact } from "../../ui/fact";
import { Table } from "../../ui/table";
import { isTable } from "../../url/tables";
import { during } from "../../url/view";
import { reworded } from "../../words/reworded";
import { say } from "../../words/say";
import { maybe } from "./facts";

/** Whether a day has been calculated. */
export function isCalculated({ state }: Pick<DayFacts, "state">): boolean {
  return state === "equal" || state === "differs";
}

/** Whether the days are equal to their bill, in the words of the worst of them. */
export function verdictOf(days: readonly Pick<DayFacts, "state">[]): { text: string; tone: "good" | "warn" | "bad" } {
  const [differ, wait] = (["differs", "pending"] as const).map(
    (state) => days.filter((each) => each.state === state).length,
  );
  if (differ) return { text: say("{n} {n|day differs|days differ}", { n: differ }), tone: "bad" };
  if (wait) return { text: say("{n} {n|day|days} not calculated yet", { n: wait }), tone: "warn" };
  if (!days.some(isCalculated)) return { text: say("Nothing calculated"), tone: "warn" };
  return { text: say("Equal to the last digit"), tone: "good" };
}

/** Above the figures: the days that are billed and not calculated, of the view and behind the last calculated one, where
 * no named period reaches. */
export function Waiting({ days, currency }: { days: readonly DayFacts[]; currency: string }) {
  const here = useHere();
  const name = here.tenant ?? "";
  const { seesAll } = useAccess(name);
  const last = present(useTenant(name))?.last_date ?? null;
  const today = new Date().toISOString().slice(0, 10);
  const behind = { start_date: add(last ?? today, 1), end_date: today };
  const later = useOf(name, "/reconciliation", { query: behind }, seesAll && last !== null && last < today);
  const run = present(usePipeline(name));
  const known = [days, present(later)?.days].filter((each) => each !== undefined).flat();
  const wait = [...new Map(known.filter((each) => each.state === "pending").map((each) => [each.date, each])).values()];
  const [first, end] = [wait[0]?.date, wait.at(-1)?.date];
  if (!first || !end) return null;
  const why = wait.find((each) => each.error)?.error ?? run?.last_result?.errors[0];
  return (
    <p className="banner bad" role="status">
      <b>
        {say("{n} {n|day is|days are} billed and not calculated yet: {amount}, {days}.", {
          n: wait.length,
          amount: <Amount amount={sum(wait.map((each) => read(each.billed)))} currency={currency} />,
          days: range(first, end),
        })}
      </b>
      {why && <span>{reworded(why)}</span>}
      <a className="more" href={here.to({ ...during(here.view, first, end), filters: [], extra: {} }, "days")}>
        {say("These days")}
      </a>
    </p>
  );
}

const LEGEND: Record<DayState, string> = {
  equal: "day h3",
  pending: "day pending",
  none: "day none",
  differs: "day differs",
};

/** Which days are complete and equal to the bill, and what the last run said. */
export function DaysCard({ costs }: { costs: Costs }) {
  const here = useHere();
  const { scope } = useAccess(here.tenant ?? "");
  const { days: facts } = costs;
  // Days are compared with the whole bill, and a part of it is not: the costs of its days are in the chart.
  if (scope || !facts) return null;
  const amounts = new Map(costs.times.map((time, n) => [time.slice(0, 10), costs.amounts[n]]));
  const days = facts.map((each) => ({
    date: each.date,
    amount: isCalculated(each) ? maybe(amounts.get(each.date)) : null,
    state: each.state,
    href: here.to(during(here.view, each.date, each.date)),
  }));
  return (
    <Card
      title={say("Days")}
      note={say("the stronger the colour, the higher the cost")}
      chart="days"
      action={
        <a className="more" href={here.to({ ...here.view, extra: {} }, "moments")}>
          {say("Compare two moments")}
        </a>
      }
      file={billingFile(here.tenant ?? "", here.view)}
    >
      <div className="daysgrid">
        {isTable(here.view, "days") ? (
          <DaysTable days={days} currency={costs.currency} />
        ) : (
          <div>
            <Calendar days={days} currency={costs.currency} />
            <p className="legend">
              {(["equal", "pending", "none", "differs"] as const).map((each) => (
                <span key={each}>
                  <i className={`key ${LEGEND[each]}`} />
                  {STATES[each]}
                </span>
              ))}
            </p>
          </div>
        )}
        <Facts facts={facts} currency={costs.currency} />
      </div>
    </Card>
  );
}

function DaysTable({ days, currency }: { days: readonly CalendarDay[]; currency: string }) {
  return (
    <Table
      className="tall"
      label={say("Table of days")}
      heads={[say("Day"), say("State"), { name: say("Cost"), end: true }]}
    >
      {days.map((each) => (
        <tr key={each.date}>
          <th scope="row" className="num">
            <a className="more" href={each.href}>
              {spoken(each.date)}
            </a>
          </th>
          <td>{STATES[each.state]}</td>
          <td className="end">{each.amount === null ? "–" : <Amount amount={each.amount} currency={currency} />}</td>
        </tr>
      ))}
    </Table>
  );
}

/** A difference with all its decimals; none at all as twelve zeros, which say how exact it is. */
export function twelve(difference: string): string {
  return ungrouped(read(difference) === 0n ? "0.000000000000" : difference);
}

function Facts({ facts, currency }: { facts: readonly DayFacts[]; currency: string }) {
  const here = useHere();
  const run = present(usePipeline(here.tenant ?? ""));
  const days = (some: DayFacts[]) => say("{some} of {n} {n|day|days}", { some: some.length, n: facts.length });
  const difference = sum(facts.filter(isCalculated).map((each) => read(each.difference)));
  return (
    <dl className="facts-list">
      <Fact name={say("Billed")}>{days(facts.filter((each) => each.state !== "none"))}</Fact>
      <Fact name={say("Calculated")}>{days(facts.filter(isCalculated))}</Fact>
      <Fact name={say("Topics")}>{days(facts.filter((each) => each.topics))}</Fact>
      <Fact name={say("Difference")}>
        <span className={difference === 0n ? "good" : "bad"} title={exact(difference, currency)}>
          {twelve(write(difference))}
        </span>
      </Fact>
      <Fact name={say("Last run")}>
        {run ? (run.last_run ? instant(run.last_run) : say("none yet [a run]")) : say("not known")}
      </Fact>
      {run?.last_result && (
        <Fact name={say("Its errors [of a run]")}>
          <span className={run.last_result.errors.length ? "bad" : undefined}>
            {run.last_result.errors.length || say("none [errors]")}
          </span>
        </Fact>
      )}
    </dl>
  );
}
