import { useAccess } from "../../api/me";
import { useOf } from "../../api/questions";
import type { Month, Months } from "../../api/shapes";
import { useHere } from "../../app/router";
import { month as monthName } from "../../format/days";
import { Amount, Card } from "../../ui/card";
import { Answered, Bone } from "../../ui/states";
import { Table } from "../../ui/table";
import { MONTH_END } from "../../url/link";
import { say } from "../../words/say";
import { ClosedMonth } from "./closed";
import { OpenMonth } from "./open";

/** What a state of a month is called, and what it means. */
const STATES: Record<Month["state"], readonly [name: string, meaning: string]> = {
  accruing: [say("Goes on"), say("the month is not over")],
  settling: [say("Settles"), say("its bill may still change")],
  blocked: [say("Blocked"), say("something is in the way of closing it")],
  ready: [say("Ready"), say("it can be closed")],
  closed: [say("Closed"), say("it is booked; what is learned later is posted to the first open month")],
  sealed: [say("Sealed"), say("it is booked, and nothing is posted about it any more")],
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
        title={say("Months")}
        note={
          months.books_begin
            ? say("booked from {month} on", { month: monthName(months.books_begin) })
            : say("no month was closed yet")
        }
      >
        <Table
          label={say("Table of months")}
          heads={[
            say("Month"),
            say("State"),
            { name: say("Own costs"), end: true },
            { name: say("Corrections"), end: true },
            { name: say("Adjustments"), end: true },
            { name: say("Booked"), end: true },
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
                {each.state === "blocked" && (
                  <span className="quiet small"> {say("{n} in the way", { n: each.blockers })}</span>
                )}
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
