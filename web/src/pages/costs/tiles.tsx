import { useAccess } from "../../api/me";
import type { Costs, DayFacts, Scope } from "../../api/shapes";
import { useHere } from "../../app/router";
import { brief, count, range } from "../../format/days";
import { about, exact, money, percent, short, signed } from "../../format/money";
import { conditions, either } from "../../format/rights";
import { pixels, ratio, read } from "../../money/money";
import { Amount, Card, Delta } from "../../ui/card";
import { Icon } from "../../ui/icons";
import { Warning } from "../../ui/states";
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
    <Card title="Total" term="shared" className="tile">
      <p className="figure lead" title={exact(amount, currency)}>
        {money(amount, currency)}
      </p>
      {comparable && previous !== null ? (
        <p className="line">
          <Delta amount={amount} previous={previous} currency={currency} />
          <span title={exact(amount - previous, currency)}>{signed(amount - previous, currency)}</span>
          <span className="quiet" title={exact(previous, currency)}>
            from {money(previous, currency)}
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
          <span title={exact(total.usage, currency)}>{percent(usage, 0)} by usage</span>
          <span title={exact(total.shared, currency)}>{percent(usage === null ? null : 1 - usage, 0)} shared</span>
        </p>
      </div>
    </Card>
  );
}

function MonthEnd({ costs: { forecast, currency } }: { costs: Costs }) {
  if (!forecast)
    return (
      <Card title="By the end of the month" className="tile">
        <p className="line quiet">It takes some weeks of days before the month’s end can be told.</p>
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
    <Card title={`By ${brief(forecast.until)}`} term="forecast" className="tile">
      <p className="figure" title={`${exact(expected, currency)}. ${forecast.method}`}>
        <span className="approx">≈ </span>
        {about(expected, currency)}
      </p>
      <p className="line quiet">
        {short(low, currency)} – {short(high, currency)}, 8 times in 10
      </p>
      <div className="foot">
        <span className="gauge" aria-hidden="true">
          <i style={{ width: `${spent * 100}%` }} />
        </span>
        <p className="ends">
          <span>
            <Amount amount={actual} currency={currency} /> spent to {brief(forecast.actual_to)}
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
    <Card title="No owner" term="no-owner" className="tile">
      <p className="figure" title={exact(amount, currency)}>
        {money(amount, currency)}
      </p>
      <p className="line">
        <span>{percent(ratio(amount, read(total.amount)))} of the total</span>
        {comparison(costs).comparable && (
          <Delta amount={amount} previous={maybe(total.previous_unallocated)} currency={currency} />
        )}
      </p>
      <p className="foot">
        <a className="more" href={here.to({ ...here.view, extra: {} }, "unowned")}>
          What is it? <Next />
        </a>
      </p>
    </Card>
  );
}

/** For a reader who sees a part of the bill: which one. Only the whole can be compared with the provider's bill. */
function YourPart({ scope }: { scope: Scope }) {
  return (
    <Card title="What you see" className="tile">
      {conditions(scope).map(({ what, values }) => (
        <p className="line" key={what}>
          <span>
            {what}: <b>{either(values)}</b>
          </span>
        </p>
      ))}
      <p className="foot note">All figures are of this part of the bill.</p>
    </Card>
  );
}

function AgainstTheBill({ days }: { days: readonly DayFacts[] }) {
  const here = useHere();
  const { text, tone } = verdictOf(days);
  return (
    <Card title="Against the bill" term="equal" className="tile">
      <p className="verdict">
        <Icon name={tone === "good" ? "check" : "warning"} className={tone} />
        {text}
      </p>
      <p className="line quiet">
        {days.filter(isCalculated).length} of {count(days.length, "day")} calculated
        {here.view.filters.length > 0 && "; the whole tenant, whatever the filters"}
      </p>
      <p className="foot">
        <a className="more" href={here.to({ ...here.view, filters: [], extra: {} }, "days")}>
          Day by day <Next />
        </a>
      </p>
    </Card>
  );
}

function Next() {
  return <span aria-hidden="true">›</span>;
}
