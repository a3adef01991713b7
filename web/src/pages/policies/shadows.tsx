import { useOf } from "../../api/questions";
import { count, range } from "../../format/days";
import { grouped } from "../../format/formats";
import { Card } from "../../ui/card";
import { Answered } from "../../ui/states";
import { Table } from "../../ui/table";

/** Policies that are calculated beside those in force, with what each would move. */
export function Shadows({ tenant }: { tenant: string }) {
  const shadows = useOf(tenant, "/shadows", { query: { page_size: 1000 } });
  return (
    <Answered answer={shadows} skeleton={null}>
      {({ items }) =>
        items.length === 0 ? null : (
          <Card title="Shadows" note="calculated beside the others, and counted nowhere">
            <Table
              label="Table of shadows"
              heads={["Name", "Days", { name: "Calculated", end: true }, { name: "Moves", end: true }, "Verdict"]}
            >
              {items.map((each) => (
                <tr key={each.name}>
                  <th scope="row">{each.name}</th>
                  <td>{range(each.start_date, each.end_date)}</td>
                  <td className="end num">{count(each.days, "day")}</td>
                  <td className="end num">{grouped(each.moved_share)} %</td>
                  <td>{each.verdict}</td>
                </tr>
              ))}
            </Table>
          </Card>
        )
      }
    </Answered>
  );
}
