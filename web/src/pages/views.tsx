import { address } from "../api/address";
import { useAccess } from "../api/me";
import { useViews } from "../api/questions";
import type { SavedView } from "../api/shapes";
import { addressOf, titleOf } from "../app/pages";
import { useHere } from "../app/router";
import { instant } from "../format/days";
import { Card } from "../ui/card";
import { RemoveButton } from "../ui/remove";
import { Answered, Bone } from "../ui/states";
import { Table } from "../ui/table";
import { readView } from "../url/view";
import { say } from "../words/say";

/** Views that somebody saved under a name, for everyone who may see the tenant. */
export function ViewsPage() {
  const { tenant } = useHere();
  const query = useViews(tenant ?? "");
  const { scope } = useAccess(tenant ?? "");
  return (
    <Card title={say("Saved views")} note={scope ? say("your own") : say("for everyone who sees this tenant")}>
      <Answered answer={query} skeleton={<Bone height={12} />}>
        {({ items }) =>
          items.length === 0 ? (
            <p className="note">
              {say("None yet. Choose a period and filters on any page, and press “Save view” there.")}
            </p>
          ) : (
            <Table
              label={say("Table of views")}
              heads={[
                say("Name"),
                say("Page"),
                say("By [a person]"),
                say("Since"),
                say("Change [a column of buttons]"),
              ]}
            >
              {items.map((each) => (
                <OneView key={each.id} {...each} />
              ))}
            </Table>
          )
        }
      </Answered>
    </Card>
  );
}

function OneView({ id, name, page, query, created_by, created_at }: SavedView) {
  const here = useHere();
  return (
    <tr>
      <th scope="row">
        <a className="more" href={here.to(readView(query), addressOf(page))}>
          {name}
        </a>
      </th>
      <td>{titleOf(page)}</td>
      <td className="quiet">{created_by}</td>
      <td className="quiet num small">{instant(created_at)}</td>
      <td>
        <RemoveButton
          href={address<"/views/{view_id}", "delete">(here.tenant ?? "", "/views/{view_id}", { at: { view_id: id } })}
          what={say("the view {name}", { name })}
        />
      </td>
    </tr>
  );
}
