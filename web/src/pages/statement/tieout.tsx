import type { StatementTie } from "../../api/shapes";
import { month } from "../../format/days";
import { read } from "../../money/money";
import { Exact } from "../../ui/card";
import { Icon } from "../../ui/icons";

/** All statements of a month beside what the provider billed. */
export function TieOut({ tie, period, currency }: { tie: StatementTie; period: string; currency: string }) {
  const isEqual = read(tie.difference) === 0n;
  return (
    <section className="tieout" aria-label="Against the provider’s bill">
      <p className={`state ${isEqual ? "good" : "bad"}`}>
        <Icon name={isEqual ? "check" : "warning"} />
        {isEqual ? "Equal to the provider’s bill, to the last digit" : "Not equal to the provider’s bill"}
      </p>
      <dl className="facts-list">
        <Row name={`All statements of ${month(period)}`} amount={tie.statements.amount} currency={currency} />
        <Row name="Billed for calculated days" amount={tie.billed.amount} currency={currency} />
        {read(tie.outdated.amount) !== 0n && (
          <Row name="Of days that are calculated again" amount={tie.outdated.amount} currency={currency} />
        )}
        <Row name="Difference" amount={tie.difference} currency={currency} />
        {read(tie.pending.amount) !== 0n && (
          <Row name="Billed and not calculated yet" amount={tie.pending.amount} currency={currency} />
        )}
      </dl>
    </section>
  );
}

function Row({ name, amount, currency }: { name: string; amount: string; currency: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <Exact amount={amount} currency={currency} />
      </dd>
    </div>
  );
}
