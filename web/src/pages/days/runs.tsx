import { useState } from "preact/compat";
import { useOf, useRuns } from "../../api/questions";
import { useHere } from "../../app/router";
import { instant } from "../../format/days";
import { grouped } from "../../format/formats";
import { Card } from "../../ui/card";
import { Drawer } from "../../ui/drawer";
import { Answered, Bone } from "../../ui/states";
import { Table } from "../../ui/table";
import { say } from "../../words/say";

const STATUSES: Record<string, string> = {
  running: say("running"),
  completed: say("completed"),
  completed_with_errors: say("completed with errors"),
  failed: say("failed"),
  timed_out: say("timed out"),
  interrupted: say("interrupted"),
  cancelled: say("cancelled"),
};

/** What the last runs did, and what went wrong in them. */
export function Runs() {
  const { tenant } = useHere();
  const query = useRuns(tenant ?? "");
  const [opened, setOpened] = useState<string | null>(null);
  return (
    <Card title={say("Runs")} note={say("the latest first [a run]")}>
      <Answered answer={query} skeleton={<Bone height={8} />}>
        {({ items }) =>
          items.length === 0 ? (
            <p className="note">{say("No run has ended yet.")}</p>
          ) : (
            <Table
              label={say("Table of runs")}
              heads={[
                say("Ended"),
                say("How [a run ended]"),
                { name: say("Days fetched"), end: true },
                { name: say("Days calculated"), end: true },
                { name: say("Rows"), end: true },
                say("Errors"),
                say("Log"),
              ]}
            >
              {items.map((each) => (
                <tr key={each.run_id}>
                  <th scope="row" className="num">
                    {each.completed_at ? instant(each.completed_at) : say("is on")}
                  </th>
                  <td>{STATUSES[each.status] ?? each.status}</td>
                  <td className="end num">{grouped(each.dates_gathered)}</td>
                  <td className="end num">{grouped(each.dates_calculated)}</td>
                  <td className="end num">{grouped(each.chargeback_rows_written)}</td>
                  <td className={`wordy ${each.errors.length ? "bad" : "quiet"}`}>
                    {each.errors.length ? each.errors.join("; ") : say("none [errors]")}
                  </td>
                  <td>
                    <button type="button" className="more" onClick={() => setOpened(each.run_id)}>
                      {say("Log")}
                      <span className="sr">{say(" of run {run}", { run: each.run_id })}</span>
                    </button>
                  </td>
                </tr>
              ))}
            </Table>
          )
        }
      </Answered>
      {opened !== null && <LogDrawer runId={opened} onClose={() => setOpened(null)} />}
    </Card>
  );
}

/** What a run has logged so far. */
function LogDrawer({ runId, onClose }: { runId: string; onClose: () => void }) {
  const { tenant } = useHere();
  const title = say("Log of run {run}", { run: runId });
  const query = useOf(tenant ?? "", "/pipeline/log", { query: { run_id: Number(runId), page_size: 1000 } });
  return (
    <Drawer title={title} onClose={onClose}>
      <Answered answer={query} skeleton={<Bone height={12} />}>
        {({ items }) =>
          items.length === 0 ? (
            <p className="note">{say("Nothing is logged yet.")}</p>
          ) : (
            <Table className="tall" label={title} heads={[say("When"), say("What")]}>
              {items.map((each, n) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: lines of a log never change their places
                <tr key={n}>
                  <th scope="row" className="num">
                    {instant(each.at)}
                  </th>
                  <td className={`wordy ${each.level === "INFO" ? "" : "bad"}`}>{each.message}</td>
                </tr>
              ))}
            </Table>
          )
        }
      </Answered>
    </Drawer>
  );
}
