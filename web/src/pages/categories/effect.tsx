import type { DryRun } from "../../api/shapes";
import { count } from "../../format/days";
import { grouped } from "../../format/formats";
import { label } from "../../format/names";
import { read, sum } from "../../money/money";
import { Amount, BeforeAndAfter } from "../../ui/card";
import { Table } from "../../ui/table";
import { type CategoryDocument, nameIn } from "./document";

/** What an edit would change, as the service says: how much is assigned, which values, who moves, and idle rules. */
export function EffectOf({ effect, document }: { effect: DryRun; document: CategoryDocument }) {
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
      <Idle effect={effect} />
    </div>
  );
}

const percentOf = (text: string | null) => (text === null ? "–" : `${grouped(text)}%`);

/** Rules that do nothing, rules that disagree, and values that the register does not have. */
function Idle({ effect }: { effect: DryRun }) {
  const found = [
    ...effect.never_matching.map((each) => `${each.rule.id} matches nothing: ${each.why}`),
    ...effect.shadowed.map(
      (each) => `${each.rule.id} does nothing: ${each.by.map((by) => by.id).join(", ")} decide before it`,
    ),
    ...effect.overlaps.map(
      (each) =>
        `${each.winner.id} wins over ${each.loser.id} for ${count(each.subjects, "combination")} that both match`,
    ),
    ...effect.unknown_values.map((each) => `${each.rule.id} makes the value ${each.value}, which is not registered`),
  ];
  if (found.length === 0) return <p className="note">Every rule does something, and no two of them disagree.</p>;
  return (
    <section aria-label="Rules to look at">
      <h3 className="small">Rules to look at</h3>
      <ul className="plain-list small">
        {found.map((each) => (
          <li key={each}>{each}</li>
        ))}
      </ul>
    </section>
  );
}
