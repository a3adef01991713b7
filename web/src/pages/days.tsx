import { useMutation, useQueryClient } from "@tanstack/react-query";
import { tell } from "../api/client";
import { asProblem } from "../api/problems";
import { tenantPath, usePipeline, useReconciliation, useRuns, useTenant } from "../api/questions";
import type { Reconciled } from "../api/shapes";
import { useHere } from "../app/router";
import { STATES } from "../charts/calendar";
import { count, instant, range, spoken } from "../format/days";
import { exact } from "../format/money";
import { read, sum, write } from "../money/money";
import { Amount, Card } from "../ui/card";
import { Icon } from "../ui/icons";
import { Answered, Bone, Empty } from "../ui/states";
import { Table } from "../ui/table";
import { Toolbar } from "../ui/toolbar";
import { during } from "../url/view";
import { isCalculated } from "./costs/days";

/** Complete? Equal to the bill? Day by day, with the runs that made it. */
export function DaysPage() {
  const here = useHere();
  const name = here.tenant ?? "";
  const query = useReconciliation(name, here.view);
  const days = query.data?.days ?? [];
  const [first, last] = [days[0]?.date, days.at(-1)?.date];
  return (
    <>
      <Toolbar shown={first && last ? { start: first, end: last } : null} compare={false} filters={false} file={null}>
        <RunButton />
      </Toolbar>
      <Answered query={query} skeleton={<Bone height={30} />}>
        {(found) =>
          found.days.length === 0 ? (
            <Empty title="No days in this period" />
          ) : (
            <Matrix days={found.days} currency={found.currency} />
          )
        }
      </Answered>
      <Runs />
    </>
  );
}

function Matrix({ days, currency }: { days: readonly Reconciled[]; currency: string }) {
  const here = useHere();
  const calculated = days.filter(isCalculated);
  const differ = days.filter((each) => each.state === "differs");
  const difference = sum(calculated.map((each) => read(each.difference)));
  return (
    <Card
      title={
        differ.length
          ? `${count(differ.length, "day")} not equal to the bill`
          : calculated.length
            ? "Equal to the last digit"
            : "Nothing calculated yet"
      }
      note={`${range(days[0]?.date ?? "", days.at(-1)?.date ?? "")}; ${calculated.length} of ${count(days.length, "day")} calculated; the whole tenant, whatever the filters`}
    >
      <Table
        className="tall"
        label="Table of days"
        heads={[
          "Day",
          "State",
          { name: "Billed", end: true },
          { name: "Charged", end: true },
          { name: "Difference", end: true },
          "Topics",
          "Bill’s fingerprint",
        ]}
        foot={
          <tr>
            <th scope="row">Total</th>
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
            <td colSpan={2} />
          </tr>
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
            </td>
            <td className="end">{each.state === "none" ? "–" : <Amount amount={each.billed} currency={currency} />}</td>
            <td className="end">{isCalculated(each) ? <Amount amount={each.charged} currency={currency} /> : "–"}</td>
            <td className={`end num ${each.state === "differs" ? "bad" : ""}`}>
              {isCalculated(each) ? twelve(each.difference) : "–"}
            </td>
            <td>{each.topics === undefined ? "" : each.topics ? "yes" : "no"}</td>
            <td className="quiet small">{each.fingerprint?.slice(0, 16) ?? ""}</td>
          </tr>
        ))}
      </Table>
    </Card>
  );
}

function twelve(amount: string): string {
  return read(amount) === 0n ? "0.000000000000" : amount.replace("-", "\u2212");
}

function State({ day }: { day: Reconciled }) {
  const icon = { equal: "check", differs: "warning", pending: "calendar", none: "minus" } as const;
  const tone = { equal: "good", differs: "bad", pending: "warn", none: "quiet" }[day.state];
  return (
    <span className={`state ${tone}`}>
      <Icon name={icon[day.state]} />
      {STATES[day.state]}
      {day.error && <span className="bad">: {day.error}</span>}
    </span>
  );
}

/** Start a run now; what happens then is on every page. */
function RunButton() {
  const { tenant } = useHere();
  const name = tenant ?? "";
  const info = useTenant(name).data;
  const pipeline = usePipeline(name);
  const client = useQueryClient();
  const start = useMutation({
    mutationFn: () => tell("POST", tenantPath(name, "pipeline/run")),
    onSettled: () => client.invalidateQueries({ queryKey: [tenantPath(name, "pipeline/status")] }),
  });
  if (!info?.features.can_run) return null;
  const running = pipeline.data?.is_running ?? false;
  return (
    <>
      <span role="status" className={start.isError ? "bad small" : "small quiet"}>
        {start.isError ? asProblem(start.error).detail : running ? "A run is on." : ""}
      </span>
      <button type="button" className="button" disabled={running || start.isPending} onClick={() => start.mutate()}>
        Run now
      </button>
    </>
  );
}

function Runs() {
  const { tenant } = useHere();
  const query = useRuns(tenant ?? "");
  return (
    <Card title="Runs" note="the latest first">
      <Answered query={query} skeleton={<Bone height={8} />}>
        {({ items }) =>
          items.length === 0 ? (
            <p className="note">No run has ended yet.</p>
          ) : (
            <Table
              label="Table of runs"
              heads={[
                "Ended",
                "How",
                { name: "Days fetched", end: true },
                { name: "Days calculated", end: true },
                { name: "Rows", end: true },
                "Errors",
              ]}
            >
              {items.map((each) => (
                <tr key={each.run_id}>
                  <th scope="row" className="num">
                    {each.completed_at ? instant(each.completed_at) : "is on"}
                  </th>
                  <td>{each.status}</td>
                  <td className="end num">{each.dates_gathered}</td>
                  <td className="end num">{each.dates_calculated}</td>
                  <td className="end num">{each.chargeback_rows_written.toLocaleString("en-US")}</td>
                  <td className={each.errors.length ? "bad" : "quiet"}>
                    {each.errors.length ? each.errors.join("; ") : "none"}
                  </td>
                </tr>
              ))}
            </Table>
          )
        }
      </Answered>
    </Card>
  );
}
