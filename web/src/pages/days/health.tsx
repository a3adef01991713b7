import { useHealth } from "../../api/questions";
import type { Health, HealthProblem } from "../../api/shapes";
import { useHere } from "../../app/router";
import { instant, range } from "../../format/days";
import { nameOf } from "../../format/health";
import { Card } from "../../ui/card";
import { Icon } from "../../ui/icons";
import { Answered, Bone } from "../../ui/states";
import { Table } from "../../ui/table";
import { during } from "../../url/view";
import { reworded } from "../../words/reworded";
import { say } from "../../words/say";
import { pendingOf } from "./pending";
import { RecalculateAll } from "./recalculateall";

const SOURCES: Record<Health["sources"][number]["source"], string> = {
  bill: say("Bill"),
  inventory: say("Inventory"),
  metrics: say("Usage"),
  topic_metrics: say("Usage of topics"),
};

/** What is wrong, the worst first, with what to do about it; and how far each source has answered. */
export function HealthCards() {
  const here = useHere();
  const query = useHealth(here.tenant ?? "", true);
  return (
    <Answered answer={query} skeleton={<Bone height={12} />}>
      {(found) => (
        <div className="halves">
          <Card
            title={found.problems.length ? say("What to look at") : say("Nothing is wrong")}
            note={found.problems.length ? say("the worst first") : say("every source has answered for every day")}
          >
            <RecalculateAll pending={pendingOf(found.problems)} />
            {found.problems.length > 0 && (
              <ul className="problems">
                {found.problems.map((each) => (
                  <Problem key={`${each.kind} ${each.start_date}`} problem={each} />
                ))}
              </ul>
            )}
          </Card>
          <Sources health={found} />
        </div>
      )}
    </Answered>
  );
}

function Problem({ problem }: { problem: HealthProblem }) {
  const here = useHere();
  const { kind, severity, causes, remedy, ended_by, start_date: start, end_date: end } = problem;
  return (
    <li>
      <Icon name="warning" className={severity === "bad" ? "bad" : "warn"} />
      <div>
        <h3>
          {nameOf(problem)}
          {start && end && (
            <a className="more" href={here.to({ ...during(here.view, start, end), filters: [], extra: {} })}>
              {range(start, end)}
            </a>
          )}
        </h3>
        {causes.map((each) => (
          <p key={each} className={severity === "bad" ? "bad" : undefined}>
            {reworded(each)}
          </p>
        ))}
        <p className="note">
          {kind === "days_waiting" && ended_by === "source" && say("Recalculating does not help. ")}
          {reworded(remedy)}
        </p>
      </div>
    </li>
  );
}

/** What a source that answers still lacks. */
function missing(days: number, last_at: string | null): string {
  if (days === 0) return say("all of it, so far");
  return last_at ? say("nothing; last fetched {time}", { time: instant(last_at) }) : say("nothing");
}

/** How far each source has answered. */
function Sources({ health: { sources, days_calculated, lookback_days } }: { health: Health }) {
  return (
    <Card
      title={say("Sources")}
      note={say("the last {n} {n|day|days} are fetched, older ones stay", { n: lookback_days })}
    >
      <Table
        label={say("Table of sources")}
        heads={[say("What"), { name: say("Days"), end: true }, say("What is missing")]}
      >
        {sources.map(({ source, days, last_at, error }) => (
          <tr key={source}>
            <th scope="row">{SOURCES[source]}</th>
            <td className="end num">{days}</td>
            <td className={error ? "bad wordy" : "quiet"}>{error ? reworded(error) : missing(days, last_at)}</td>
          </tr>
        ))}
        <tr>
          <th scope="row">{say("Costs")}</th>
          <td className="end num">{days_calculated}</td>
          <td className="quiet">{days_calculated ? say("nothing") : say("the first day needs all of these")}</td>
        </tr>
      </Table>
    </Card>
  );
}
