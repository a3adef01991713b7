import { useOf } from "../../api/questions";
import { range } from "../../format/days";
import { grouped } from "../../format/formats";
import { Card } from "../../ui/card";
import { Answered } from "../../ui/states";
import { Table } from "../../ui/table";
import { say } from "../../words/say";

/** Policies that are calculated beside those in force, with what each would move. */
export function Shadows({ tenant }: { tenant: string }) {
  const shadows = useOf(tenant, "/shadows", { query: { page_size: 1000 } });
  return (
    <Answered answer={shadows} skeleton={null}>
      {({ items }) =>
        items.length === 0 ? null : (
          <Card title={say("Shadows")} note={say("calculated beside the others, and counted nowhere")}>
            <Table
              label={say("Table of shadows")}
              heads={[
                say("Name"),
                say("Days"),
                { name: say("Calculated"), end: true },
                { name: say("Moves"), end: true },
                say("Verdict"),
              ]}
            >
              {items.map((each) => (
                <tr key={each.name}>
                  <th scope="row">{each.name}</th>
                  <td>{range(each.start_date, each.end_date)}</td>
                  <td className="end num">{say("{n} {n|day|days}", { n: each.days })}</td>
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
