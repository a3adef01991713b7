import { useHistory } from "../../api/categories";
import { useHere } from "../../app/router";
import { count, instant } from "../../format/days";
import { grouped } from "../../format/formats";
import { Card } from "../../ui/card";
import { Answered, Bone } from "../../ui/states";
import { Table } from "../../ui/table";

/** Who changed the category, when, and why. */
export function History({ categoryKey }: { categoryKey: string }) {
  const { tenant } = useHere();
  const query = useHistory(tenant ?? "", categoryKey);
  return (
    <Card title="History" note={query.known && count(query.known.data.total, "version")}>
      <Answered answer={query} skeleton={<Bone height={10} />}>
        {(found) => (
          <>
            <Table
              className="tall"
              label="Table of versions"
              heads={["Version", "When", "Who", "Why", { name: "Rules", end: true }, { name: "Values", end: true }]}
            >
              {found.items.map((each) => (
                <tr key={each.version}>
                  <th scope="row" className="num">
                    {each.version}
                    {each.removed && " (removed)"}
                  </th>
                  <td className="num">{instant(each.at)}</td>
                  <td>{each.who}</td>
                  <td>{each.reason ?? <span className="quiet">–</span>}</td>
                  <td className="end num">{grouped(each.rules)}</td>
                  <td className="end num">{grouped(each.values)}</td>
                </tr>
              ))}
            </Table>
            {found.total > found.items.length && <p className="note">The last {found.items.length} are shown.</p>}
          </>
        )}
      </Answered>
    </Card>
  );
}
