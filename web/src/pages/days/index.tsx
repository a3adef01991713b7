import { useState } from "preact/compat";
import { present } from "../../api/answer";
import { useReconciliation, useTenant } from "../../api/questions";
import type { Reconciled } from "../../api/shapes";
import { useHere } from "../../app/router";
import { STATES } from "../../charts/calendar";
import { range, spoken } from "../../format/days";
import { grouped } from "../../format/formats";
import { exact } from "../../format/money";
import { read, sum, write } from "../../money/money";
import { Amount, Card } from "../../ui/card";
import { billingFile } from "../../ui/csv";
import { Icon } from "../../ui/icons";
import { Answered, Bone, Empty } from "../../ui/states";
import { Table } from "../../ui/table";
import { Toolbar } from "../../ui/toolbar";
import { during } from "../../url/view";
import { reworded } from "../../words/reworded";
import { say } from "../../words/say";
import { isCalculated, twelve, verdictOf, Waiting } from "../costs/days";
import { FirstRun } from "../firstrun";
import { RunControls } from "./controls";
import { DayDrawer } from "./day";
import { HealthCards } from "./health";
import { Runs } from "./runs";
import { Sinks } from "./sinks";

/** Complete? Equal to the bill? Day by day, with the runs that made it. */
export function DaysPage() {
  const here = useHere();
  const name = here.tenant ?? "";
  const query = useReconciliation(name, here.view);
  const isFirst = present(useTenant(name))?.last_date === null;
  const days = query.known?.data.days;
  const [first, last] = [days?.[0]?.date, days?.at(-1)?.date];
  const shown = first && last ? { start: first, end: last } : null;
  return (
    <>
      <Toolbar shown={shown} compare={false} filters={false}>
        <a className="button" href={here.to({ ...here.view, extra: {} }, "moments")}>
          {say("Compare two moments")}
        </a>
        <RunControls shown={shown} />
      </Toolbar>
      {isFirst ? (
        <FirstRun />
      ) : (
        <>
          <HealthCards />
          <Answered answer={query} skeleton={<Bone height={30} />}>
            {(found) =>
              found.days.length === 0 ? (
                <Empty title={say("No days in this period")} />
              ) : (
                <>
                  <Waiting days={found.days} currency={found.currency} />
                  <Matrix days={found.days} currency={found.currency} />
                </>
              )
            }
          </Answered>
        </>
      )}
      <Runs />
      <Sinks />
    </>
  );
}

function Matrix({ days, currency }: { days: readonly Reconciled[]; currency: string }) {
  const here = useHere();
  const [opened, setOpened] = useState<Reconciled | null>(null);
  const calculated = days.filter(isCalculated);
  const difference = sum(calculated.map((each) => read(each.difference)));
  return (
    <Card
      title={verdictOf(days).text}
      term={days.some((each) => each.state === "pending") ? "waiting" : "equal"}
      note={say("{range}; {calculated} of {n} {n|day|days} calculated; the whole tenant, whatever the filters", {
        range: range(days[0]?.date ?? "", days.at(-1)?.date ?? ""),
        calculated: calculated.length,
        n: days.length,
      })}
      file={billingFile(here.tenant ?? "", here.view)}
    >
      <Table
        className="tall"
        label={say("Table of days")}
        heads={[
          say("Day"),
          say("State"),
          { name: say("Billed"), end: true },
          { name: say("Charged"), end: true },
          { name: say("Difference"), end: true },
          { name: say("No owner"), end: true },
          { name: say("Rows"), end: true },
          say("Topics"),
          say("History"),
        ]}
        foot={
          calculated.length > 0 && (
            <tr>
              <th scope="row">{calculated.length < days.length ? say("Total of calculated days") : say("Total")}</th>
              <td />
              <td className="end">
                <Amount amount={sum(calculated.map((each) => read(each.billed)))} currency={currency} />
              </td>
              <td className="end">
                <Amount amount={sum(calculated.map((each) => read(each.charged)))} currency={currency} />
              </td>
              <td className="end num" title={exact(difference, currency)}>
                {twelve(write(difference))}
              </td>
              <td className="end">
                <Amount amount={sum(calculated.map((each) => read(each.unallocated)))} currency={currency} />
              </td>
              <td className="end num">{grouped(calculated.reduce((all, each) => all + each.rows, 0))}</td>
              <td colSpan={2} />
            </tr>
          )
        }
      >
        {[...days].reverse().map((each) => (
          <tr key={each.date}>
            <th scope="row" className="num">
              <a className="more" href={here.to({ ...during(here.view, each.date, each.date), extra: {} }, "costs")}>
                {spoken(each.date)}
              </a>
            </th>
            <td>
              <State day={each} />
              {each.error && <div className="bad small wordy">{reworded(each.error)}</div>}
            </td>
            <td className="end">{each.state === "none" ? "–" : <Amount amount={each.billed} currency={currency} />}</td>
            <td className="end">{isCalculated(each) ? <Amount amount={each.charged} currency={currency} /> : "–"}</td>
            <td className={`end num ${each.state === "differs" ? "bad" : ""}`}>
              {isCalculated(each) ? twelve(each.difference) : "–"}
            </td>
            <td className="end">
              {isCalculated(each) ? <Amount amount={each.unallocated} currency={currency} /> : "–"}
            </td>
            <td className="end num">{isCalculated(each) ? grouped(each.rows) : "–"}</td>
            <td>{each.topics ? say("yes") : say("no")}</td>
            <td>
              <button type="button" className="more" onClick={() => setOpened(each)}>
                {each.revision === null ? say("Details") : say("Revision {number}", { number: String(each.revision) })}
                <span className="sr">{say(" of {day}", { day: spoken(each.date) })}</span>
              </button>
            </td>
          </tr>
        ))}
      </Table>
      {opened && <DayDrawer day={opened} currency={currency} onClose={() => setOpened(null)} />}
    </Card>
  );
}

function State({ day }: { day: Reconciled }) {
  const icon = { equal: "check", differs: "warning", pending: "calendar", none: "minus" } as const;
  const tone = { equal: "good", differs: "bad", pending: "warn", none: "quiet" }[day.state];
  return (
    <span className={`state ${tone}`}>
      <Icon name={icon[day.state]} />
      {STATES[day.state]}
      {day.policies === "superseded" && <span className="badge">{say("policies superseded")}</span>}
    </span>
  );
}
