import { useState } from "preact/compat";
import { useCoverage } from "../../api/categories";
import type { Category, Coverage } from "../../api/shapes";
import { useHere } from "../../app/router";
import { instant, inTime } from "../../format/days";
import { grouped } from "../../format/formats";
import { dimension, label, UNASSIGNED } from "../../format/names";
import { read, sum } from "../../money/money";
import { Amount, Card } from "../../ui/card";
import { Drawer } from "../../ui/drawer";
import { Answered, Bone, BoneTable } from "../../ui/states";
import { Table } from "../../ui/table";
import { toggle } from "../../url/view";
import { say } from "../../words/say";
import { Assign } from "./assign";
import { Condition } from "./condition";
import { assignWords, type CategoryDocument, nameIn } from "./document";
import { SavedNotice } from "./saved";
import type { Saved } from "./undo";

interface CoverageProps {
  category: Category;
  /** Null for who may not. */
  onEdit: (() => void) | null;
  onRemove: (() => void) | null;
}

/** How much of the costs has a value, and which version of the category says so. */
export function CoverageCard({ category, onEdit, onRemove }: CoverageProps) {
  const here = useHere();
  const query = useCoverage(here.tenant ?? "", category.key, here.view);
  return (
    <Card
      title={dimension(`category:${category.key}`)}
      term="category"
      note={
        say("version {version}, {time}, by {who}", {
          version: `${category.version}`,
          time: instant(category.at),
          who: category.who,
        }) + (category.reason ? `: ${category.reason}` : "")
      }
      action={
        <>
          <a className="more" href={here.to({ ...here.view, by: `category:${category.key}`, extra: {} }, "costs")}>
            {say("Costs over time")}
          </a>
          {onEdit && (
            <button type="button" className="button" onClick={onEdit}>
              {say("Edit")}
            </button>
          )}
          {onRemove && (
            <button type="button" className="button" onClick={onRemove}>
              {say("Remove")}
            </button>
          )}
        </>
      }
    >
      <Answered answer={query} skeleton={<Bone height={5.8} />}>
        {(found) => <Covered found={found} />}
      </Answered>
    </Card>
  );
}

function Covered({ found }: { found: Coverage }) {
  if (found.percent === null) return <p className="note">{say("There are no costs in this view.")}</p>;
  return (
    <div className="covered">
      <p className="whole">{say("{number}%", { number: grouped(found.percent) })}</p>
      <p className="note">{say("of the cost is assigned")}</p>
      <span className="gauge" aria-hidden="true">
        <i style={{ width: `${Math.max(0, Math.min(100, Number(found.percent)))}%` }} />
      </span>
      <p className="note">
        {say("{assigned} assigned, {unassigned} not", {
          assigned: <Amount amount={found.assigned} currency={found.currency} />,
          unassigned: <Amount amount={found.unassigned} currency={found.currency} />,
        })}
      </p>
    </div>
  );
}

/** The rules in their order, with what each of them assigned. */
export function RulesCard({ categoryKey, document }: { categoryKey: string; document: CategoryDocument }) {
  const here = useHere();
  const query = useCoverage(here.tenant ?? "", categoryKey, here.view);
  const { rules = [] } = document;
  const ofRule = (found: Coverage, index: number | null) =>
    sum(found.by_rule.filter((each) => (each.rule?.index ?? null) === index).map((each) => read(each.amount)));
  return (
    <Card title={say("Rules")} note={say("{n} {n|rule|rules}; the first that matches decides", { n: rules.length })}>
      <Answered answer={query} skeleton={<BoneTable rows={rules.length + 2} />}>
        {(found) => (
          <Table
            className="tall"
            label={say("Table of rules")}
            heads={[
              say("Rule"),
              say("Where [the condition of a rule]"),
              say("Value"),
              say("When and why"),
              { name: say("Assigned"), end: true },
            ]}
          >
            {rules.map((rule, index) => (
              <tr key={rule.id ?? index}>
                <th scope="row" className="num">
                  {index + 1}
                  {rule.id && <span className="quiet small"> {rule.id}</span>}
                </th>
                <td className="wordy">
                  <Condition match={rule.match} />
                </td>
                <td>{assignWords(rule, (value) => nameIn(document, value))}</td>
                <td className="quiet small">
                  {inTime(rule).trim() || say("always")}
                  {rule.reason && `; ${rule.reason}`}
                </td>
                <td className="end">
                  <Amount amount={ofRule(found, index)} currency={found.currency} />
                </td>
              </tr>
            ))}
            <tr>
              <th scope="row">–</th>
              <td>{say("no rule")}</td>
              <td>{nameIn(document, document.default ?? UNASSIGNED)}</td>
              <td />
              <td className="end">
                <Amount amount={ofRule(found, null)} currency={found.currency} />
              </td>
            </tr>
          </Table>
        )}
      </Answered>
    </Card>
  );
}

/** Who has no value, and the way to give one. */
export function UnassignedCard({ categoryKey, canEdit }: { categoryKey: string; canEdit: boolean }) {
  const here = useHere();
  const query = useCoverage(here.tenant ?? "", categoryKey, here.view);
  const [chosen, setChosen] = useState<string | null>(null);
  const [saved, setSaved] = useState<{ change: Saved | null } | null>(null);
  const choose = (id: string | null) => {
    setChosen(id);
    setSaved(null);
  };
  return (
    <Card title={say("Not assigned")} term="not-assigned" note={say("by identity, the highest cost first")}>
      <Answered answer={query} skeleton={<Bone height={12} />}>
        {(found) =>
          found.top_unassigned.length === 0 ? (
            <p className="note">{say("Everything is assigned.")}</p>
          ) : (
            <Table
              className="tall"
              label={say("Table of who is not assigned")}
              heads={[say("Who"), { name: say("Amount"), end: true }, canEdit && say("Change [to edit]")]}
            >
              {found.top_unassigned.map((each) => {
                const { name, id } = label("identity_id", each.identity_id, each.display_name);
                return (
                  <tr key={each.identity_id}>
                    <th scope="row">
                      <a
                        className="more"
                        href={here.to(toggle({ ...here.view, extra: {} }, "identity_id", each.identity_id), "costs")}
                      >
                        {name}
                      </a>
                      {id && <span className="quiet small"> {id}</span>}
                    </th>
                    <td className="end">
                      <Amount amount={each.amount} currency={found.currency} />
                    </td>
                    {canEdit && (
                      <td>
                        <button type="button" className="more" onClick={() => choose(each.identity_id)}>
                          {say("Assign")}
                          <span className="sr"> {name}</span>
                        </button>
                      </td>
                    )}
                  </tr>
                );
              })}
            </Table>
          )
        }
      </Answered>
      {chosen !== null && query.known && (
        <Drawer title={say("Assign")} onClose={() => choose(null)}>
          {saved ? (
            <SavedNotice categoryKey={categoryKey} saved={saved.change} />
          ) : (
            <Assign
              categoryKey={categoryKey}
              subjects={query.known.data.top_unassigned.map((each) => ({
                kind: "identity",
                id: each.identity_id,
                name: each.display_name,
              }))}
              first={chosen}
              onSaved={(change) => setSaved({ change })}
            />
          )}
        </Drawer>
      )}
    </Card>
  );
}
