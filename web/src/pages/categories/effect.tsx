import type { DryRun } from "../../api/shapes";
import { count } from "../../format/days";
import { grouped } from "../../format/formats";
import { label } from "../../format/names";
import { read, sum } from "../../money/money";
import { Amount, BeforeAndAfter } from "../../ui/card";
import { Table } from "../../ui/table";
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
          Coverage {before ? `${percentOf(before.percent)} → ` : ""}
          {percentOf(after.percent)}
        </b>
        <span>
          {before
            ? `${count(values.length, "value")} ${values.length === 1 ? "changes" : "change"}, `
            : `${count(effect.values.length, "value")}; a new category moves nothing`}
          {before && (
            <>
              <Amount amount={moves} currency={currency} /> of costs get another value
            </>
          )}
        </span>
      </p>
      {values.length > 0 && (
        <Table
          className="tall"
          label="Values that change"
          heads={[
            "Value",
            { name: "Before", end: true },
            { name: "After", end: true },
            { name: "Difference", end: true },
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
        <Table className="tall" label="What moves" heads={["Who", "From", "To", { name: "Amount", end: true }]}>
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

const percentOf = (text: string | null) => (text === null ? "–" : `${grouped(text)}%`);

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
      .map((each) => `${each.rule.id} matches nothing: ${each.why}`),
    ...effect.shadowed
      .filter((each) => isTouched(each.rule) || each.by.some(isTouched))
      .map((each) => `${each.rule.id} does nothing: ${each.by.map((by) => by.id).join(", ")} decide before it`),
    ...effect.overlaps
      .filter((each) => isTouched(each.winner) || isTouched(each.loser))
      .map(
        (each) =>
          `${each.winner.id} wins over ${each.loser.id} for ${count(each.subjects, "combination")} that both match`,
      ),
    ...effect.unknown_values
      .filter((each) => hasOtherValues || isTouched(each.rule))
      .map((each) => `${each.rule.id} makes the value ${each.value}, which is not registered`),
  ];
}

type Lint = Pick<DryRun, "never_matching" | "shadowed" | "overlaps" | "unknown_values">;

function ToLookAt({ all }: { all: readonly string[] }) {
  if (all.length === 0) return null;
  return (
    <section aria-label="Rules to look at">
      <h3 className="small">Rules to look at</h3>
      <ul className="plain-list small">
        {all.map((each) => (
          <li key={each}>{each}</li>
        ))}
      </ul>
    </section>
  );
}
