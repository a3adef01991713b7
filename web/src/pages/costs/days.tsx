import { useAccess } from "../../api/me";
import { usePipeline } from "../../api/questions";
import type { Costs, DayFacts, DayState } from "../../api/shapes";
import { useHere } from "../../app/router";
import { Calendar, type CalendarDay, STATES } from "../../charts/calendar";
import { count, instant, spoken } from "../../format/days";
import { exact } from "../../format/money";
import { read, sum, write } from "../../money/money";
import { Amount, Card } from "../../ui/card";
import { billingFile } from "../../ui/csv";
import { Fact } from "../../ui/fact";
import { Table } from "../../ui/table";
import { isTable } from "../../url/tables";
import { during } from "../../url/view";
import { maybe } from "./facts";

/** Whether a day has been calculated. */
export function isCalculated({ state }: Pick<DayFacts, "state">): boolean {
  return state === "equal" || state === "differs";
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
  const facts = costs.days ?? [];
  const amounts = new Map(costs.times.map((time, n) => [time.slice(0, 10), costs.amounts[n] ?? "0"]));
  const days = facts.map((each) => ({
    date: each.date,
    amount: isCalculated(each) ? maybe(amounts.get(each.date) ?? each.charged) : null,
    state: each.state,
    href: here.to(during(here.view, each.date, each.date)),
  }));
  // Days are compared with the whole bill, and a part of it is not: the costs of its days are in the chart.
  if (scope) return null;
  return (
    <Card
      title="Days"
      note="the stronger the colour, the higher the cost"
      chart="days"
      action={
        <a className="more" href={here.to({ ...here.view, extra: {} }, "moments")}>
          Compare two moments
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
    <Table className="tall" label="Table of days" heads={["Day", "State", { name: "Cost", end: true }]}>
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

function Facts({ facts, currency }: { facts: readonly DayFacts[]; currency: string }) {
  const here = useHere();
  const run = usePipeline(here.tenant ?? "").data;
  const all = count(facts.length, "day");
  const difference = sum(facts.filter(isCalculated).map((each) => read(each.difference)));
  const errors = run?.last_result?.errors ?? [];
  const whole = difference === 0n ? "0.000000000000" : write(difference);
  return (
    <dl className="facts-list">
      <Fact name="Billed">
        {facts.filter((each) => each.state !== "none").length} of {all}
      </Fact>
      <Fact name="Calculated">
        {facts.filter(isCalculated).length} of {all}
      </Fact>
      <Fact name="Topics">
        {facts.filter((each) => each.topics).length} of {all}
      </Fact>
      <Fact name="Difference">
        <span className={difference === 0n ? "good" : "bad"} title={exact(difference, currency)}>
          {whole}
        </span>
      </Fact>
      <Fact name="Last run">{run?.last_run ? instant(run.last_run) : "none yet"}</Fact>
      <Fact name="Its errors">{errors.length === 0 ? "none" : <span className="bad">{errors.length}</span>}</Fact>
    </dl>
  );
}
