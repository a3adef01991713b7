import { useReconciliation } from "../../api/questions";
import type { Tenant } from "../../api/shapes";
import { useHere } from "../../app/router";
import { count } from "../../format/days";
import { read, sum } from "../../money/money";
import { Answered, Bone } from "../../ui/states";
import { AgainstTheBill } from "../../ui/tieout";
import type { Dates } from "../../url/period";
import { during } from "../../url/view";
import { isCalculated } from "../costs/days";

/** What the provider billed for the same days, beside what this bill charges. */
export function TieOut({ tenant, dates, total }: { tenant: Tenant; dates: Dates; total: string }) {
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
            isEqual={difference === 0n}
            amounts={[
              [`Billed for ${count(calculated.length, "calculated day")}`, billed],
              ["Charged in this bill", total],
              ["Difference", difference],
            ]}
            currency={currency}
          >
            {pending > 0 && (
              <p className="warn small">
                {count(pending, "day")} {pending === 1 ? "is" : "are"} billed and not calculated yet: the bill will
                grow.
              </p>
            )}
          </AgainstTheBill>
        );
      }}
    </Answered>
  );
}
