import type { ReactNode } from "preact/compat";
import { present } from "../api/answer";
import { useAccess } from "../api/me";
import { useCosts, useTenant } from "../api/questions";
import type { Costs } from "../api/shapes";
import { useHere } from "../app/router";
import { RankedList } from "../charts/ranked";
import { grouped } from "../format/formats";
import { advice, NOBODY, reason } from "../format/names";
import { refused } from "../format/rights";
import { read } from "../money/money";
import { Amount, Card, share } from "../ui/card";
import { rowsFile } from "../ui/csv";
import { Answered, Bone, Empty } from "../ui/states";
import { Table } from "../ui/table";
import { Toolbar } from "../ui/toolbar";
import { has, toggle } from "../url/view";
import { say } from "../words/say";
import { ToAssign } from "./categories/toassign";
import { comparison, ranked } from "./costs/facts";
import { TagForm } from "./tags/form";

const BY = ["resource_id", "product_type", "environment_id", "allocation_detail"];

/** What nobody could be charged for, why, and what to do about it. */
export function UnownedPage() {
  const here = useHere();
  const name = here.tenant ?? "";
  const tenant = present(useTenant(name));
  const narrowed = has(here.view, "identity_id", NOBODY) ? here.view : toggle(here.view, "identity_id", NOBODY);
  const { may } = useAccess(name);
  const query = useCosts(name, narrowed, BY, { top: 20, include: ["issues"] });
  const all = present(useCosts(name, here.view, ["identity_id"], { top: 1 }));
  const compared = query.known?.data.compared_with;
  return (
    <>
      <Toolbar
        currencies
        compared={compared ? { start: compared.start_date, end: compared.end_date } : null}
        file={rowsFile(name, narrowed, "unowned")}
      />
      <Answered answer={query} skeleton={<Bone height={30} />}>
        {(found) =>
          found.total.rows === 0 ? (
            <>
              <Nothing />
              <ToAssign narrowed={narrowed} />
            </>
          ) : (
            <Reasons costs={found} whole={all} canTag={may("tag") && (tenant?.features.can_tag ?? false)}>
              <ToAssign narrowed={narrowed} />
            </Reasons>
          )
        }
      </Answered>
    </>
  );
}

function Nothing() {
  return (
    <Empty title={say("Everything has an owner")}>
      <p>{say("In this view, no cost is charged to nobody.")}</p>
    </Empty>
  );
}

interface ReasonsProps {
  costs: Costs;
  whole: Costs | undefined;
  canTag: boolean;
  children: ReactNode;
}

function Reasons({ costs, whole, canTag, children }: ReasonsProps) {
  const here = useHere();
  const { isKnown, may } = useAccess(here.tenant ?? "");
  const { currency, total } = costs;
  const issues = costs.issues?.filter((each) => each.unallocated);
  const amount = read(total.amount);
  const resources = costs.breakdowns.find((each) => each.by === "resource_id");
  const listing = { ...here, colour: (_: string | null, index: number) => (index < 0 ? "k-others" : "k-bar") };
  return (
    <>
      <Card
        title={say("{amount} has no owner", { amount: <Amount amount={amount} currency={currency} /> })}
        term="no-owner"
        note={
          whole &&
          say("{share} of the total, {n} {n|row|rows}", {
            share: share(amount, read(whole.total.amount)),
            n: total.rows,
          })
        }
      >
        <Table
          label={say("Reasons")}
          heads={[
            say("Why"),
            say("What to do"),
            { name: say("Resources"), end: true },
            { name: say("Rows"), end: true },
            { name: say("Amount"), end: true },
          ]}
        >
          {issues?.map((each) => (
            <tr key={each.reason}>
              <th scope="row">
                <a
                  className="more"
                  href={here.to(
                    toggle(toggle(here.view, "identity_id", NOBODY), "allocation_detail", each.reason),
                    "rows",
                  )}
                >
                  {reason(each.reason)}
                </a>
              </th>
              <td className="quiet">{advice(each.reason) ?? say("See the rows.")}</td>
              <td className="end num">{grouped(each.resources)}</td>
              <td className="end num">{grouped(each.rows)}</td>
              <td className="end">
                <Amount amount={each.amount} currency={currency} />
              </td>
            </tr>
          ))}
        </Table>
      </Card>
      {children}
      <div className="split">
        {resources && (
          <Card title={say("Resources")} note={say("what these costs are for")}>
            <RankedList
              items={ranked(resources, 12, listing)}
              whole={amount}
              currency={currency}
              comparable={comparison(costs).comparable}
            />
          </Card>
        )}
        <Card title={say("Name a team")} note={say("tag the resources, so that a team sees what is its own")}>
          {canTag && resources ? (
            <TagForm
              entities={resources.items.flatMap((each) =>
                each.value ? [{ type: "resource", id: each.value, name: each.name }] : [],
              )}
            />
          ) : (
            <p className="note">{isKnown && !may("tag") ? refused("tag") : say("Tags cannot be changed here.")}</p>
          )}
        </Card>
      </div>
    </>
  );
}
