import { useMemo, useState } from "preact/compat";
import { present } from "../../api/answer";
import { documentOf, useCategories, useCategory, useCoverage, useUnassigned } from "../../api/categories";
import { useAccess } from "../../api/me";
import { useCosts, useTenant } from "../../api/questions";
import type { Costs, Coverage } from "../../api/shapes";
import { useHere } from "../../app/router";
import { amid, dimension, label, NOBODY } from "../../format/names";
import { larger, read, sum } from "../../money/money";
import { Amount, Card } from "../../ui/card";
import { Choice } from "../../ui/choice";
import { Answered, BoneTable } from "../../ui/states";
import { Table } from "../../ui/table";
import { toggle, type View } from "../../url/view";
import { say } from "../../words/say";
import { Assign } from "./assign";
import { type CategoryDocument, nameIn } from "./document";
import { offersOf, type Proposal, type Subject } from "./proposals";
import { useProposals } from "./proposing";
import { SavedNotice } from "./saved";
import type { Saved } from "./undo";

/** What is to get a value: what it is, what it lacks, what it costs, and which value is proposed. */
interface Lacking extends Subject {
  worry: "no-owner" | "not-assigned";
  amount: string;
}

const WORRIES: Record<Lacking["worry"], string> = {
  "no-owner": say("no owner"),
  "not-assigned": say("not assigned"),
};

const NONE: readonly Lacking[] = [];
/** The service names so many at once. */
const MOST = 50;
const SKELETON = <BoneTable rows={8} />;

/** What has no owner and what is not assigned, in one list by a cost category; several can get a value at once.
 * `narrowed` is the view of what has no owner. */
export function ToAssign({ narrowed }: { narrowed: View }) {
  const here = useHere();
  const { seesAll } = useAccess(here.tenant ?? "");
  const keys = present(useCategories(here.tenant ?? ""))?.items.map((each) => each.key);
  const key = keys?.find((each) => each === here.view.extra.key) ?? keys?.[0];
  if (!keys || key === undefined || !seesAll) return null;
  const named = keys.map((each) => [each, dimension(`category:${each}`)] as const);
  const category = dimension(`category:${key}`);
  return (
    <Card
      title={say("To be assigned")}
      note={say("by {category}", { category: amid(category) })}
      term="not-assigned"
      action={keys.length > 1 && <Choice name={say("Cost category")} values={named} chosen={key} field="key" />}
    >
      <ByCategory key={key} categoryKey={key} narrowed={narrowed} />
    </Card>
  );
}

function ByCategory({ categoryKey, narrowed }: { categoryKey: string; narrowed: View }) {
  const here = useHere();
  const name = here.tenant ?? "";
  const by = `category:${categoryKey}`;
  const unassigned = useUnassigned(name, by);
  // What has no owner may have a value all the same.
  const open = unassigned === null ? narrowed : toggle({ ...narrowed, currency: null }, by, unassigned);
  const coverage = useCoverage(name, categoryKey, here.view);
  const costs = useCosts(name, open, ["resource_id"], { top: MOST });
  return (
    <Answered answer={coverage} skeleton={SKELETON}>
      {(covered) => (
        <Answered answer={costs} skeleton={SKELETON}>
          {(found) => <List categoryKey={categoryKey} rows={lacking(found, covered)} currency={covered.currency} />}
        </Answered>
      )}
    </Answered>
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
  return [unowned, unassigned].flatMap((each) => each || NONE);
}

const ORDERS = [
  ["cost", say("Highest cost")],
  ["proposal", say("Proposal")],
  ["name", say("Name")],
] as const;

interface Row extends Lacking {
  key: string;
  called: string;
  proposal: Proposal | null;
}

const keyOf = ({ kind, id }: Subject) => `${kind} ${id}`;

/** The rows in an order; where that makes no difference, the highest cost is first. */
function ordered(rows: readonly Row[], order: string): Row[] {
  const textOf = ({ proposal, called }: Row) => (order === "proposal" ? (proposal?.value ?? "\uffff") : called);
  const byCost = [...rows].sort((a, b) => larger(read(a.amount), read(b.amount)));
  return order === "cost" ? byCost : byCost.sort((a, b) => textOf(a).localeCompare(textOf(b)));
}

interface ListProps {
  categoryKey: string;
  rows: readonly Lacking[];
  currency: string;
}

function List({ categoryKey, rows: all, currency }: ListProps) {
  const here = useHere();
  const name = here.tenant ?? "";
  const { may } = useAccess(name);
  const canEdit = (present(useTenant(name))?.features.can_tag ?? false) && may("admin");
  const category = present(useCategory(name, categoryKey));
  const document = useMemo(() => (category && canEdit ? documentOf(category.body) : null), [category, canEdit]);
  const { propose, isKnown, problem } = useProposals(categoryKey, document);
  const [chosen, setChosen] = useState<readonly string[]>([]);
  const [saved, setSaved] = useState<{ change: Saved | null } | null>(null);
  const order = ORDERS.find(([each]) => each === here.view.extra.sort)?.[0] ?? "cost";
  const rows = useMemo(() => {
    const full = all.map((each): Row => {
      const called = label(`${each.kind}_id`, each.id, each.name).name;
      return { ...each, key: keyOf(each), called, proposal: propose(each) };
    });
    return ordered(full, order);
  }, [all, propose, order]);
  const subjects = rows.filter((each) => chosen.includes(each.key));
  const choose = (keys: readonly string[]) => {
    setSaved(null);
    setChosen(keys);
  };
  return (
    <div className="stack">
      {saved && <SavedNotice categoryKey={categoryKey} saved={saved.change} />}
      {rows.length === 0 ? (
        <p className="note">{say("Everything is assigned.")}</p>
      ) : (
        <>
          <div className="tools">
            <Choice
              name={say("Order")}
              values={document ? ORDERS : ORDERS.filter(([each]) => each !== "proposal")}
              chosen={order}
              field="sort"
            />
            {document && <Chooser rows={rows} document={document} chosen={chosen} onChoose={choose} />}
          </div>
          <Rows rows={rows} currency={currency} editing={document && { document, chosen, onChoose: choose, isKnown }} />
          {Object.values(Object.groupBy(all, (each) => each.kind)).some((each) => each.length >= MOST) && (
            <p className="note">
              {say("The {n} with the highest cost are shown, of what has no owner and of what is not assigned.", {
                n: MOST,
              })}
            </p>
          )}
          {problem && <p className="note">{say("Nothing is proposed: {why}", { why: problem.detail })}</p>}
        </>
      )}
      {document && subjects.length > 0 && (
        <section className="stack" aria-label={say("Assign")}>
          <p className="banner">
            <b>{say("{n} {n|thing|things} chosen:", { n: subjects.length })}</b>{" "}
            <Amount amount={sum(subjects.map((each) => read(each.amount)))} currency={currency} />
          </p>
          <Assign
            categoryKey={categoryKey}
            subjects={subjects}
            onNarrow={(all) => choose(all.map(keyOf))}
            onSaved={(change) => {
              setChosen([]);
              setSaved({ change });
            }}
          />
        </section>
      )}
    </div>
  );
}

/** What is chosen, and what tells of it. */
interface Choosing {
  document: CategoryDocument;
  chosen: readonly string[];
  onChoose: (keys: readonly string[]) => void;
}

const MOST_OFFERS = 6;

/** Choose all, none, or everything for which the same value is proposed. */
function Chooser({ rows, document, chosen, onChoose }: Choosing & { rows: readonly Row[] }) {
  const offers = offersOf(rows, ({ proposal }) => proposal);
  return (
    <fieldset className="tools">
      <legend className="sr">{say("Choose")}</legend>
      <button type="button" className="button" onClick={() => onChoose(rows.map((each) => each.key))}>
        {say("All {n}", { n: rows.length })}
      </button>
      {offers.slice(0, MOST_OFFERS).map((each) => (
        <button
          key={each.value}
          type="button"
          className="button"
          onClick={() => onChoose(each.subjects.map(({ key }) => key))}
        >
          {say("Proposed {value}, {n}", { value: nameIn(document, each.value), n: each.subjects.length })}
        </button>
      ))}
      {chosen.length > 0 && (
        <button type="button" className="button plain" onClick={() => onChoose([])}>
          {say("None [to choose]")}
        </button>
      )}
    </fieldset>
  );
}

interface RowsProps {
  rows: readonly Row[];
  currency: string;
  /** Null for who may not assign; `isKnown`: whether it is known what is proposed. */
  editing: (Choosing & { isKnown: boolean }) | null;
}

function Rows({ rows, currency, editing }: RowsProps) {
  const toggled = (all: readonly string[], key: string) =>
    all.includes(key) ? all.filter((each) => each !== key) : [...all, key];
  return (
    <Table
      className="tall"
      label={say("Table of what is to be assigned")}
      heads={[say("What"), editing !== null && say("Proposed"), { name: say("Amount"), end: true }]}
    >
      {rows.map((each) => (
        <tr key={each.key}>
          <th scope="row" className="wordy">
            {editing ? (
              <label className="check">
                <input
                  type="checkbox"
                  checked={editing.chosen.includes(each.key)}
                  onChange={() => editing.onChoose(toggled(editing.chosen, each.key))}
                />{" "}
                {each.called}
                {each.called !== each.id && <span className="quiet small"> {each.id}</span>}
                <Worry of={each} />
              </label>
            ) : (
              <>
                {each.called} <Worry of={each} />
              </>
            )}
          </th>
          {editing && (
            <td>
              {each.proposal ? (
                <>
                  {nameIn(editing.document, each.proposal.value)}{" "}
                  <span className="quiet small block">{each.proposal.why}</span>
                </>
              ) : (
                editing.isKnown && <span className="quiet">–</span>
              )}
            </td>
          )}
          <td className="end">
            <Amount amount={each.amount} currency={currency} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

function Worry({ of: { worry } }: { of: Lacking }) {
  return <span className="quiet small">{WORRIES[worry]}</span>;
}
