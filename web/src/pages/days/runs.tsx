import { useRuns } from "../../api/questions";
import { useHere } from "../../app/router";
import { instant } from "../../format/days";
import { Card } from "../../ui/card";
import { Answered, Bone } from "../../ui/states";
import { Table } from "../../ui/table";

/** What the last runs did, and what went wrong in them. */
export function Runs() {
  const { tenant } = useHere();
  const query = useRuns(tenant ?? "");
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
                  <td className={`wordy ${each.errors.length ? "bad" : "quiet"}`}>
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
