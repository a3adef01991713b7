import type { Explained } from "../../api/shapes";
import { instant } from "../../format/days";
import { cause } from "../../format/names";
import { Exact } from "../../ui/card";
import { Table } from "../../ui/table";
import { say } from "../../words/say";

/** What the amount was in every revision of the day, and why the day changed. */
export function Revisions({ found, currency }: { found: Explained; currency: string }) {
  if (found.revisions.length === 0) return null;
  return (
    <section className="contenders">
      <h3>{say("What it was before")}</h3>
      <Table label={say("Revisions")} heads={[say("Calculated"), say("Because"), { name: say("Amount"), end: true }]}>
        {found.revisions.map((each) => (
          <tr key={each.revision} className={each.revision === found.revision ? "lit" : undefined}>
            <th scope="row">{instant(each.calculated_at)}</th>
            <td>{cause(each.cause)}</td>
            <td className="end">
              {each.amount === null ? (
                <span className="quiet">{say("no longer kept")}</span>
              ) : (
                <Exact amount={each.amount} currency={currency} />
              )}
            </td>
          </tr>
        ))}
      </Table>
    </section>
  );
}
