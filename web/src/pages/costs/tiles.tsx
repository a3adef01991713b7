import { useAccess } from "../../api/me";
import type { Costs, DayFacts, Scope } from "../../api/shapes";
import { useHere } from "../../app/router";
import { brief, range } from "../../format/days";
import { about, exact, money, percent, short, signed } from "../../format/money";
import { conditions, either } from "../../format/rights";
import { pixels, ratio, read } from "../../money/money";
import { Amount, Card, Delta } from "../../ui/card";
import { Icon } from "../../ui/icons";
import { Warning } from "../../ui/states";
import { say } from "../../words/say";
import { isCalculated, verdictOf } from "./days";
import { comparison, maybe } from "./facts";

export function Tiles({ costs }: { costs: Costs }) {
  const { scope } = useAccess(useHere().tenant ?? "");
  return (
    <div className="tiles">
      <Total costs={costs} />
      <MonthEnd costs={costs} />
      <WithoutOwner costs={costs} />
      {scope ? <YourPart scope={scope} /> : costs.days && <AgainstTheBill days={costs.days} />}
    </div>
  );
}

function Total({ costs }: { costs: Costs }) {
  const { total, currency } = costs;
  const [amount, previous] = [read(total.amount), maybe(total.previous)];
  const { comparable, why } = comparison(costs);
  const usage = ratio(read(total.usage), amount);
  return (
    <Card title={say("Total")} term="shared" className="tile">
      <p className="figure lead" title={exact(amount, currency)}>
        {money(amount, currency)}
      </p>
      {comparable && previous !== null ? (
        <p className="line">
          <Delta amount={amount} previous={previous} currency={currency} />
          <span title={exact(amount - previous, currency)}>{signed(amount - previous, currency)}</span>
          <span className="quiet" title={exact(previous, currency)}>
            {say("from {amount} [before]", { amount: money(previous, currency) })}
          </span>
        </p>
      ) : why ? (
        <Warning>{why}</Warning>
      ) : (
        <p className="line quiet">{range(costs.start_date, costs.end_date)}</p>
      )}
      <div className="foot">
        <span className="gauge" aria-hidden="true">
          <i style={{ width: `${Math.max(0, Math.min(1, usage ?? 0)) * 100}%` }} />
          <i style={{ flex: 1 }} />
        </span>
        <p className="ends">
          <span title={exact(total.usage, currency)}>{say("{percent} by usage", { percent: percent(usage, 0) })}</span>
          <span title={exact(total.shared, currency)}>
            {say("{percent} shared", { percent: percent(usage === null ? null : 1 - usage, 0) })}
          </span>
        </p>
      </div>
    </Card>
  );
}

function MonthEnd({ costs: { forecast, currency } }: { costs: Costs }) {
  if (!forecast)
    return (
      <Card title={say("By the end of the month")} className="tile">
        <p className="line quiet">{say("It takes some weeks of days before the month’s end can be told.")}</p>
      </Card>
    );
  const [actual, expected, low, high] = [
    read(forecast.actual),
    read(forecast.expected),
    read(forecast.low),
    read(forecast.high),
  ];
  const spent = expected > 0n ? Math.max(0, Math.min(1, pixels(actual) / pixels(expected))) : 0;
  return (
    <Card title={say("By {day}", { day: brief(forecast.until) })} term="forecast" className="tile">
      <p className="figure" title={`${exact(expected, currency)}. ${forecast.method}`}>
        <span className="approx">≈ </span>
        {about(expected, currency)}
      </p>
      <p className="line quiet">
        {say("{low} – {high}, 8 times in 10", { low: short(low, currency), high: short(high, currency) })}
      </p>
      <div className="foot">
        <span className="gauge" aria-hidden="true">
          <i style={{ width: `${spent * 100}%` }} />
        </span>
        <p className="ends">
          <span>
            {say("{amount} spent to {day}", {
              amount: <Amount amount={actual} currency={currency} />,
              day: brief(forecast.actual_to),
            })}
          </span>
        </p>
      </div>
    </Card>
  );
}

function WithoutOwner({ costs }: { costs: Costs }) {
  const { total, currency } = costs;
  const here = useHere();
  const amount = read(total.unallocated);
  return (
    <Card title={say("No owner")} term="no-owner" className="tile">
      <p className="figure" title={exact(amount, currency)}>
        {money(amount, currency)}
      </p>
      <p className="line">
        <span>{say("{percent} of the total", { percent: percent(ratio(amount, read(total.amount))) })}</span>
        {comparison(costs).comparable && (
          <Delta amount={amount} previous={maybe(total.previous_unallocated)} currency={currency} />
        )}
      </p>
      <p className="foot">
        <a className="more" href={here.to({ ...here.view, extra: {} }, "unowned")}>
          {say("What is it?")} <Next />
        </a>
      </p>
    </Card>
  );
}

/** For a reader who sees a part of the bill: which one. Only the whole can be compared with the provider's bill. */
function YourPart({ scope }: { scope: Scope }) {
  return (
    <Card title={say("What you see")} className="tile">
      {conditions(scope).map(({ what, values }) => (
        <p className="line" key={what}>
          <span>
            {what}: <b>{either(values)}</b>
          </span>
        </p>
      ))}
      <p className="foot note">{say("All figures are of this part of the bill.")}</p>
    </Card>
  );
}

function AgainstTheBill({ days }: { days: readonly DayFacts[] }) {
  const here = useHere();
  const { text, tone } = verdictOf(days);
  return (
    <Card title={say("Against the bill")} term="equal" className="tile">
      <p className="verdict">
        <Icon name={tone === "good" ? "check" : "warning"} className={tone} />
        {text}
      </p>
      <p className="line quiet">
        {say("{some} of {n} {n|day|days} calculated", { some: days.filter(isCalculated).length, n: days.length })}
        {here.view.filters.length > 0 && say("; the whole tenant, whatever the filters")}
      </p>
      <p className="foot">
        <a className="more" href={here.to({ ...here.view, filters: [], extra: {} }, "days")}>
          {say("Day by day")} <Next />
        </a>
      </p>
    </Card>
  );
}

function Next() {
  return <span aria-hidden="true">›</span>;
}
