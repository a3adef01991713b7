import { useAccess } from "../../api/me";
import { useOf } from "../../api/questions";
import type { Month, Months } from "../../api/shapes";
import { useHere } from "../../app/router";
import { month as monthName } from "../../format/days";
import { Amount, Card } from "../../ui/card";
import { Answered, Bone } from "../../ui/states";
import { Table } from "../../ui/table";
import { MONTH_END } from "../../url/link";
import { ClosedMonth } from "./closed";
import { OpenMonth } from "./open";

/** What a state of a month is called, and what it means. */
const STATES: Record<Month["state"], readonly [name: string, meaning: string]> = {
  accruing: ["Goes on", "the month is not over"],
  settling: ["Settles", "its bill may still change"],
  blocked: ["Blocked", "something is in the way of closing it"],
  ready: ["Ready", "it can be closed"],
  closed: ["Closed", "it is booked; what is learned later is posted to the first open month"],
  sealed: ["Sealed", "it is booked, and nothing is posted about it any more"],
};

export const stateOf = (state: Month["state"]): string => STATES[state][0];

/** The months of the books with their states, and one of them: as it would be closed, or as it was. */
export function MonthEndPage() {
  const name = useHere().tenant ?? "";
  const found = useOf(name, "/periods");
  return (
    <Answered answer={found} skeleton={<Bone height={30} />}>
      {(months) => <Listed tenant={name} months={months} />}
    </Answered>
  );
}

/** The month that a reader most likely means: the one to close next; before the first closing, the last that is over. */
export function usualMonth({ items, next_to_close }: Pick<Months, "items" | "next_to_close">): string | undefined {
  const isOver = items.find((each) => each.state !== "accruing");
  return next_to_close ?? isOver?.period_id ?? items[0]?.period_id;
}

function Listed({ tenant, months }: { tenant: string; months: Months }) {
  const here = useHere();
  const { may } = useAccess(tenant);
  const chosen = months.items.find((each) => each.period_id === (here.part ?? usualMonth(months)));
  const { currency } = months;
  const isClosed = chosen?.state === "closed" || chosen?.state === "sealed";
  return (
    <>
      <Card
        title="Months"
        note={months.books_begin ? `booked from ${monthName(months.books_begin)} on` : "no month was closed yet"}
      >
        <Table
          label="Table of months"
          heads={[
            "Month",
            "State",
            { name: "Own costs", end: true },
            { name: "Corrections", end: true },
            { name: "Adjustments", end: true },
            { name: "Booked", end: true },
          ]}
        >
          {months.items.map((each) => (
            <tr key={each.period_id} aria-current={each === chosen ? "true" : undefined}>
              <th scope="row">
                <a className="more" href={here.to(here.view, `${MONTH_END}/${each.period_id}`)} data-replace="">
                  {monthName(each.start)}
                </a>
              </th>
              <td title={STATES[each.state][1]}>
                {stateOf(each.state)}
                {each.state === "blocked" && <span className="quiet small"> {each.blockers} in the way</span>}
              </td>
              <td className="end">
                <Amount amount={each.totals.regular} currency={currency} />
              </td>
              <td className="end">
                <Amount amount={each.totals.corrections} currency={currency} />
              </td>
              <td className="end">
                <Amount amount={each.totals.adjustments} currency={currency} />
              </td>
              <td className="end">
                <Amount amount={each.totals.posted} currency={currency} />
              </td>
            </tr>
          ))}
        </Table>
      </Card>
      {chosen &&
        (isClosed ? (
          <ClosedMonth key={chosen.period_id} tenant={tenant} month={chosen} months={months} mayAdmin={may("admin")} />
        ) : (
          <OpenMonth key={chosen.period_id} tenant={tenant} month={chosen} mayClose={may("close")} />
        ))}
    </>
  );
}
