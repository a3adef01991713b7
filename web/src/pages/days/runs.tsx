import { useState } from "react";
import { useOf, useRuns } from "../../api/questions";
import { useHere } from "../../app/router";
import { instant } from "../../format/days";
import { grouped } from "../../format/formats";
import { Card } from "../../ui/card";
import { Drawer } from "../../ui/drawer";
import { Answered, Bone } from "../../ui/states";
import { Table } from "../../ui/table";

/** What the last runs did, and what went wrong in them. */
export function Runs() {
  const { tenant } = useHere();
  const query = useRuns(tenant ?? "");
  const [opened, setOpened] = useState<string | null>(null);
  return (
    <Card title="Runs" note="the latest first">
      <Answered answer={query} skeleton={<Bone height={8} />}>
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
                "Log",
              ]}
            >
              {items.map((each) => (
                <tr key={each.run_id}>
                  <th scope="row" className="num">
                    {each.completed_at ? instant(each.completed_at) : "is on"}
                  </th>
                  <td>{each.status}</td>
                  <td className="end num">{grouped(each.dates_gathered)}</td>
                  <td className="end num">{grouped(each.dates_calculated)}</td>
                  <td className="end num">{grouped(each.chargeback_rows_written)}</td>
                  <td className={`wordy ${each.errors.length ? "bad" : "quiet"}`}>
                    {each.errors.length ? each.errors.join("; ") : "none"}
                  </td>
                  <td>
                    <button type="button" className="more" onClick={() => setOpened(each.run_id)}>
                      Log<span className="sr"> of run {each.run_id}</span>
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
  const query = useOf(tenant ?? "", "/pipeline/log", { query: { run_id: Number(runId), page_size: 1000 } });
  return (
    <Drawer title={`Log of run ${runId}`} onClose={onClose}>
      <Answered answer={query} skeleton={<Bone height={12} />}>
        {({ items }) =>
          items.length === 0 ? (
            <p className="note">Nothing is logged yet.</p>
          ) : (
            <Table className="tall" label={`Log of run ${runId}`} heads={["When", "What"]}>
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
