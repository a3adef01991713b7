import { usePipeline } from "../../api/questions";
import type { Costs, DayFacts, DayState } from "../../api/shapes";
import { useHere } from "../../app/router";
import { Calendar, STATES } from "../../charts/calendar";
import { count, instant } from "../../format/days";
import { exact } from "../../format/money";
import { read, sum, write } from "../../money/money";
import { Card } from "../../ui/card";
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
  const facts = costs.days ?? [];
  const amounts = new Map(costs.times.map((time, n) => [time.slice(0, 10), costs.amounts[n] ?? "0"]));
  const days = facts.map((each) => ({
    date: each.date,
    amount: isCalculated(each) ? maybe(amounts.get(each.date) ?? each.charged) : null,
    state: each.state,
    href: here.to(during(here.view, each.date, each.date)),
  }));
  return (
    <Card title="Days" note="the stronger the colour, the higher the cost">
      <div className="daysgrid">
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
        <Facts facts={facts} currency={costs.currency} />
      </div>
    </Card>
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

function Fact({ name, children }: { name: string; children: React.ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}
