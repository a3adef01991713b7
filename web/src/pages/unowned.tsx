import { type ReactNode, useState } from "react";
import { present } from "../api/answer";
import { useCategories, useCoverage } from "../api/categories";
import { address } from "../api/client";
import { useAccess } from "../api/me";
import { useCosts, useTenant } from "../api/questions";
import type { Costs, Coverage } from "../api/shapes";
import { useHere } from "../app/router";
import { RankedList } from "../charts/ranked";
import { count } from "../format/days";
import { grouped } from "../format/formats";
import { GLOSSARY } from "../format/glossary";
import { advice, dimension, label, NOBODY, reason } from "../format/names";
import { refused } from "../format/rights";
import { larger, read, sum, write } from "../money/money";
import { Amount, Card, share } from "../ui/card";
import { Answered, Bone, BoneTable, Empty } from "../ui/states";
import { Table } from "../ui/table";
import { Toolbar } from "../ui/toolbar";
import { apiQuery, has, toggle, type View } from "../url/view";
import { Assign, type Subject } from "./categories/assign";
import { comparison, ranked } from "./costs/facts";
import { TagForm } from "./tags/form";

const NONE: readonly Lacking[] = [];
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
        file={{
          href: address(name, "/chargebacks.csv", {
            query: apiQuery(narrowed, { compare: false }),
            filters: narrowed.filters,
          }),
          name: `${name}-unowned.csv`,
        }}
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
    <Empty title="Everything has an owner">
      <p>In this view, no cost is charged to nobody.</p>
    </Empty>
  );
}

/** What is to get an owner: what it is, what it lacks, and what it costs. */
interface Lacking extends Subject {
  worry: "no-owner" | "not-assigned";
  amount: string;
}

/** What has no owner and what is not assigned, in one list, the highest cost first; several can get a value at once. */
function ToAssign({ narrowed }: { narrowed: View }) {
  const here = useHere();
  const name = here.tenant ?? "";
  const { may, seesAll } = useAccess(name);
  const canEdit = (present(useTenant(name))?.features.can_tag ?? false) && may("admin") && seesAll;
  const categories = present(useCategories(name))?.items.map((each) => each.key);
  const first = categories?.[0] ?? "";
  const coverage = useCoverage(name, seesAll ? first : "", here.view);
  const costs = useCosts(name, { ...narrowed, currency: null }, BY, { top: 20, include: ["issues"] });
  if (!categories || !first || !seesAll) return null;
  const by = dimension(`category:${first}`).toLowerCase();
  return (
    <Card
      title="To be assigned"
      note={`by ${by}, the highest cost first${canEdit ? "; choose one or more" : ""}`}
      term="not-assigned"
    >
      <Answered answer={coverage} skeleton={<BoneTable rows={8} />}>
        {(covered) => (
          <Answered answer={costs} skeleton={<BoneTable rows={8} />}>
            {(found) => (
              <ToAssignList
                rows={lacking(found, covered)}
                currency={covered.currency}
                categories={canEdit ? categories : null}
              />
            )}
          </Answered>
        )}
      </Answered>
    </Card>
  );
}

function lacking(costs: Costs, { top_unassigned }: Coverage): Lacking[] {
  const resources = costs.breakdowns.find((each) => each.by === "resource_id")?.items.filter((each) => each.value);
  const unowned = resources?.map(({ value, name, amount }): Lacking => {
    return { kind: "resource", id: value ?? "", name, amount, worry: "no-owner" };
  });
  const unassigned = top_unassigned
    .filter((each) => each.identity_id !== NOBODY)
    .map(({ identity_id: id, display_name: name, amount }): Lacking => {
      return { kind: "identity", id, name, amount, worry: "not-assigned" };
    });
  return [unowned, unassigned].flatMap((each) => each || NONE).sort((a, b) => larger(read(a.amount), read(b.amount)));
}

interface ListProps {
  rows: readonly Lacking[];
  currency: string;
  /** Null for who may not assign. */
  categories: readonly string[] | null;
}

function ToAssignList({ rows, currency, categories }: ListProps) {
  const [chosen, setChosen] = useState<readonly string[]>([]);
  if (rows.length === 0) return <p className="note">Everything is assigned.</p>;
  const keyOf = (each: Lacking) => `${each.kind} ${each.id}`;
  const choose = (key: string) =>
    setChosen((all) => (all.includes(key) ? all.filter((each) => each !== key) : [...all, key]));
  const subjects = rows.filter((each) => chosen.includes(keyOf(each)));
  return (
    <>
      <Table
        className="tall"
        label="Table of what is to be assigned"
        heads={["What", "It is", { name: "Amount", end: true }]}
      >
        {rows.map((each) => {
          const [key, { name, id }] = [keyOf(each), label(`${each.kind}_id`, each.id, each.name)];
          return (
            <tr key={key}>
              <th scope="row">
                {categories ? (
                  <label className="check">
                    <input type="checkbox" checked={chosen.includes(key)} onChange={() => choose(key)} /> {name}
                    {id && <span className="quiet small"> {id}</span>}
                  </label>
                ) : (
                  name
                )}
              </th>
              <td className="quiet">{GLOSSARY[each.worry][0].toLowerCase()}</td>
              <td className="end">
                <Amount amount={each.amount} currency={currency} />
              </td>
            </tr>
          );
        })}
      </Table>
      {categories && subjects.length > 0 && (
        <section className="stack" aria-label="Assign">
          <p className="banner">
            <b>{count(subjects.length, "thing")} chosen:</b>{" "}
            <Amount amount={write(sum(subjects.map((each) => read(each.amount))))} currency={currency} />
          </p>
          <Assign categories={categories} subjects={subjects} />
        </section>
      )}
    </>
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
        title={
          <>
            <Amount amount={amount} currency={currency} /> has no owner
          </>
        }
        term="no-owner"
        note={whole && `${share(amount, read(whole.total.amount))} of the total, ${count(total.rows, "row")}`}
      >
        <Table
          label="Reasons"
          heads={[
            "Why",
            "What to do",
            { name: "Resources", end: true },
            { name: "Rows", end: true },
            { name: "Amount", end: true },
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
              <td className="quiet">{advice(each.reason) ?? "See the rows."}</td>
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
          <Card title="Resources" note="what these costs are for">
            <RankedList
              items={ranked(resources, 12, listing)}
              whole={amount}
              currency={currency}
              comparable={comparison(costs).comparable}
            />
          </Card>
        )}
        <Card title="Name a team" note="tag the resources, so that a team sees what is its own">
          {canTag && resources ? (
            <TagForm
              entities={resources.items.flatMap((each) =>
                each.value ? [{ type: "resource", id: each.value, name: each.name }] : [],
              )}
            />
          ) : (
            <p className="note">{isKnown && !may("tag") ? refused("tag") : "Tags cannot be changed here."}</p>
          )}
        </Card>
      </div>
    </>
  );
}
