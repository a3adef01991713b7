/** What was charged beside what the provider billed. */
import type { ReactNode } from "preact/compat";
import { useReconciliation } from "../../api/questions";
import type { StatementTie, Tenant } from "../../api/shapes";
import { useHere } from "../../app/router";
import { month } from "../../format/days";
import { amid } from "../../format/names";
import { read, sum } from "../../money/money";
import { Exact } from "../../ui/card";
import { Fact } from "../../ui/fact";
import { Icon } from "../../ui/icons";
import { Answered, Bone } from "../../ui/states";
import type { Dates } from "../../url/period";
import { during } from "../../url/view";
import { say } from "../../words/say";
import { isCalculated } from "../costs/days";

/** What the provider billed for the same days, beside what this bill charges. */
export function MonthsAgainstTheBill({ tenant, dates, total }: { tenant: Tenant; dates: Dates; total: string }) {
  const here = useHere();
  const query = useReconciliation(tenant.tenant_name, during(here.view, dates.start, dates.end));
  return (
    <Answered answer={query} skeleton={<Bone height={6} />}>
      {({ days, currency }) => {
        const calculated = days.filter(isCalculated);
        const pending = days.filter((each) => each.state === "pending").length;
        const billed = sum(calculated.map((each) => read(each.billed)));
        const difference = billed - read(total);
        return (
          <AgainstTheBill
            state={tieState(difference === 0n)}
            amounts={[
              [say("Billed for {n} {n|calculated day|calculated days}", { n: calculated.length }), billed],
              [say("Charged in this bill"), total],
              [say("Difference"), difference],
            ]}
            currency={currency}
          >
            {pending > 0 && (
              <p className="warn small">
                {say("{n} {n|day is|days are} billed and not calculated yet: the bill will grow.", { n: pending })}
              </p>
            )}
          </AgainstTheBill>
        );
      }}
    </Answered>
  );
}

/** All statements of a month beside what the provider billed. */
export function StatementsAgainstTheBill({
  tie,
  period,
  currency,
}: {
  tie: StatementTie;
  period: string;
  currency: string;
}) {
  const between = besideTheBill(tie);
  return (
    <AgainstTheBill
      state={tieState(
        read(tie.difference) === 0n,
        between.map(([name]) => name),
      )}
      amounts={[
        [say("All statements of {month}", { month: month(period) }), tie.statements.amount],
        [say("Billed for calculated days"), tie.billed.amount],
        ...between,
        [say("Difference"), tie.difference],
        ...unlessZero(say("Billed and not calculated yet"), tie.pending.amount),
      ]}
      currency={currency}
    />
  );
}

/** What statements have that is not on the provider's bill of calculated days. */
export function besideTheBill(tie: StatementTie): [name: string, amount: string][] {
  return [
    ...unlessZero(say("Days that are calculated again"), tie.outdated.amount),
    ...unlessZero(say("Corrections of earlier months"), tie.corrections?.amount),
    ...unlessZero(say("Adjustments"), tie.adjustments?.amount),
  ];
}

function unlessZero(name: string, amount: string | undefined): [name: string, amount: string][] {
  return amount === undefined || read(amount) === 0n ? [] : [[name, amount]];
}

/** A class and the sentence that says whether everything is accounted for, and what lies between. */
export function tieState(isEqual: boolean, between: readonly string[] = []): [tone: "good" | "bad", says: string] {
  const more = between.map((each) => ` + ${amid(each)}`).join("");
  return isEqual
    ? ["good", say("Equal to the provider’s bill{more}, to the last digit", { more })]
    : ["bad", say("Not equal to the provider’s bill{more}", { more })];
}

/** Amounts beside what the provider billed, and whether they are equal to the last digit. */
function AgainstTheBill({
  state: [tone, says],
  amounts,
  currency,
  children,
}: {
  state: ReturnType<typeof tieState>;
  amounts: [name: string, amount: string | bigint][];
  currency: string;
  children?: ReactNode;
}) {
  return (
    <section className="tieout" aria-label={say("Against the provider’s bill")}>
      <p className={`state ${tone}`}>
        <Icon name={tone === "good" ? "check" : "warning"} />
        {says}
      </p>
      <dl className="facts-list">
        {amounts.map(([name, amount]) => (
          <Fact key={name} name={name}>
            <Exact amount={amount} currency={currency} />
          </Fact>
        ))}
      </dl>
      {children}
    </section>
  );
}
