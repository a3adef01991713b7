import type { DryRun } from "../../api/shapes";
import { grouped } from "../../format/formats";
import { label } from "../../format/names";
import { read, sum } from "../../money/money";
import { Amount, BeforeAndAfter } from "../../ui/card";
import { Table } from "../../ui/table";
import { reworded } from "../../words/reworded";
import { say } from "../../words/say";
import { type CategoryDocument, canonical, nameIn, sameRules } from "./document";

interface Props {
  effect: DryRun;
  /** The document before the edit, and after it. */
  base: CategoryDocument;
  document: CategoryDocument;
}

/** What an edit would change, as the service says: how much is assigned, which values, who moves, and what is to be looked
 * at of the rules that it touches. */
export function EffectOf({ effect, base, document }: Props) {
  const { currency, coverage_before: before, coverage_after: after } = effect;
  const values = effect.values.filter((each) => read(each.difference) !== 0n);
  const moves = sum(effect.moved.map((each) => read(each.amount)));
  const name = (value: string) => nameIn(document, value);
  return (
    <div className="stack" role="status">
      <p className="banner">
        <b>
          {before
            ? say("Coverage {before} → {after}", {
                before: percentOf(before.percent),
                after: percentOf(after.percent),
              })
            : say("Coverage {after}", { after: percentOf(after.percent) })}
        </b>
        <span>
          {before
            ? say("{n} {n|value changes|values change}, {amount} of costs get another value", {
                n: values.length,
                amount: <Amount amount={moves} currency={currency} />,
              })
            : say("{n} {n|value|values}; a new category moves nothing", { n: effect.values.length })}
        </span>
      </p>
      {values.length > 0 && (
        <Table
          className="tall"
          label={say("Values that change")}
          heads={[
            say("Value"),
            { name: say("Before [a change]"), end: true },
            { name: say("After [a change]"), end: true },
            { name: say("Difference"), end: true },
          ]}
        >
          {values.map((each) => (
            <tr key={each.value}>
              <th scope="row">{name(each.value)}</th>
              <BeforeAndAfter before={each.before} after={each.after} delta={each.difference} currency={currency} />
            </tr>
          ))}
        </Table>
      )}
      {effect.items.length > 0 && (
        <Table
          className="tall"
          label={say("What moves")}
          heads={[say("Who"), say("From [a value]"), say("To [a value]"), { name: say("Amount"), end: true }]}
        >
          {effect.items.map((each) => (
            <tr key={`${each.identity_id} ${each.before} ${each.after}`}>
              <th scope="row">{label("identity_id", each.identity_id, each.display_name).name}</th>
              <td>{name(each.before)}</td>
              <td>{name(each.after)}</td>
              <td className="end">
                <Amount amount={each.amount} currency={currency} />
              </td>
            </tr>
          ))}
        </Table>
      )}
      <ToLookAt all={notesOf(effect, base, document)} />
    </div>
  );
}

const percentOf = (text: string | null) => (text === null ? "–" : say("{number}%", { number: grouped(text) }));

/** What is to be looked at of the rules that an edit touches: those that do nothing, or disagree with another one, and
 * values that are not registered. What was so before is not said again. */
export function notesOf(effect: Lint, base: CategoryDocument, document: CategoryDocument): string[] {
  const { first, last } = sameRules(base, document);
  const end = (document.rules?.length ?? 0) - last;
  const isTouched = ({ index }: { index: number }) => index >= first && index < end;
  const hasOtherValues = canonical(base.values) !== canonical(document.values);
  return [
    ...effect.never_matching
      .filter((each) => isTouched(each.rule))
      .map((each) => say("{rule} matches nothing: {why}", { rule: each.rule.id, why: reworded(each.why) })),
    ...effect.shadowed
      .filter((each) => isTouched(each.rule) || each.by.some(isTouched))
      .map((each) =>
        say("{rule} does nothing: {others} decide before it", {
          rule: each.rule.id,
          others: each.by.map((by) => by.id).join(", "),
        }),
      ),
    ...effect.overlaps
      .filter((each) => isTouched(each.winner) || isTouched(each.loser))
      .map((each) =>
        say("{winner} wins over {loser} for {n} {n|combination|combinations} that both match", {
          winner: each.winner.id,
          loser: each.loser.id,
          n: each.subjects,
        }),
      ),
    ...effect.unknown_values
      .filter((each) => hasOtherValues || isTouched(each.rule))
      .map((each) =>
        say("{rule} makes the value {value}, which is not registered", { rule: each.rule.id, value: each.value }),
      ),
  ];
}

type Lint = Pick<DryRun, "never_matching" | "shadowed" | "overlaps" | "unknown_values">;

function ToLookAt({ all }: { all: readonly string[] }) {
  if (all.length === 0) return null;
  return (
    <section aria-label={say("Rules to look at")}>
      <h3 className="small">{say("Rules to look at")}</h3>
      <ul className="plain-list small">
        {all.map((each) => (
          <li key={each}>{each}</li>
        ))}
      </ul>
    </section>
  );
}
