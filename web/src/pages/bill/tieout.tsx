import { useReconciliation } from "../../api/questions";
import type { Tenant } from "../../api/shapes";
import { useHere } from "../../app/router";
import { count } from "../../format/days";
import { read, sum } from "../../money/money";
import { Exact } from "../../ui/card";
import { Icon } from "../../ui/icons";
import { Answered, Bone } from "../../ui/states";
import type { Dates } from "../../url/period";
import { during } from "../../url/view";
import { isCalculated } from "../costs/days";

/** What the provider billed for the same days, beside what this bill charges. */
export function TieOut({ tenant, dates, total }: { tenant: Tenant; dates: Dates; total: string }) {
  const here = useHere();
  const query = useReconciliation(tenant.tenant_name, during(here.view, dates.start, dates.end));
  return (
    <Answered query={query} skeleton={<Bone height={6} />}>
      {({ days, currency }) => {
        const calculated = days.filter(isCalculated);
        const pending = days.filter((each) => each.state === "pending").length;
        const billed = sum(calculated.map((each) => read(each.billed)));
        const difference = billed - read(total);
        return (
          <section className="tieout" aria-label="Against the provider’s bill">
            <p className={`state ${difference === 0n ? "good" : "bad"}`}>
              <Icon name={difference === 0n ? "check" : "warning"} />
              {difference === 0n
                ? "Equal to the provider’s bill, to the last digit"
                : "Not equal to the provider’s bill"}
            </p>
            <dl className="facts-list">
              <Row
                name={`Billed for ${count(calculated.length, "calculated day")}`}
                amount={billed}
                currency={currency}
              />
              <Row name="Charged in this bill" amount={read(total)} currency={currency} />
              <Row name="Difference" amount={difference} currency={currency} />
            </dl>
            {pending > 0 && (
              <p className="warn small">
                {count(pending, "day")} {pending === 1 ? "is" : "are"} billed and not calculated yet: the bill will
                grow.
              </p>
            )}
          </section>
        );
      }}
    </Answered>
  );
}

function Row({ name, amount, currency }: { name: string; amount: bigint; currency: string }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>
        <Exact amount={amount} currency={currency} />
      </dd>
    </div>
  );
}
