import type { StatementTie } from "../../api/shapes";
import { month } from "../../format/days";
import { read } from "../../money/money";
import { AgainstTheBill } from "../../ui/tieout";

/** All statements of a month beside what the provider billed. */
export function TieOut({ tie, period, currency }: { tie: StatementTie; period: string; currency: string }) {
  const unlessZero = (name: string, amount: string): [string, string][] =>
    read(amount) === 0n ? [] : [[name, amount]];
  return (
    <AgainstTheBill
      isEqual={read(tie.difference) === 0n}
      amounts={[
        [`All statements of ${month(period)}`, tie.statements.amount],
        ["Billed for calculated days", tie.billed.amount],
        ...unlessZero("Of days that are calculated again", tie.outdated.amount),
        ["Difference", tie.difference],
        ...unlessZero("Billed and not calculated yet", tie.pending.amount),
      ]}
      currency={currency}
    />
  );
}
