import { useId, useState } from "react";
import type { Explained } from "../../api/shapes";
import { count } from "../../format/days";
import { grouped } from "../../format/formats";
import { percent } from "../../format/money";
import { Digits } from "../../ui/digits";
import { Table } from "../../ui/table";
import { type Contender, contendersOf } from "./steps";

interface Props {
  found: Explained;
  ask: (who: string) => void;
  more: () => void;
}

/** Who shares the amount, the largest first; each leads to an explanation of its own, also one that is not listed. */
export function Contenders({ found, ask, more }: Props) {
  const listed = contendersOf(found);
  const total = found.evidence?.contenders_total ?? 0;
  return (
    <section className="contenders">
      <h3>Who shares it</h3>
      {listed.length > 0 && (
        <Table label="Who shares it" heads={["Who", { name: "Measured", end: true }, { name: "Part", end: true }]}>
          {listed.map((each) => (
            <tr key={each.id ?? ""} className={each.asked ? "lit" : undefined}>
              <th scope="row">
                <Who each={each} ask={ask} />
              </th>
              <td className="end">{each.value === null ? "equal" : <Digits text={grouped(each.value)} />}</td>
              <td className="end num">{percent(Number(each.ratio), 2)}</td>
            </tr>
          ))}
        </Table>
      )}
      {total > listed.length && (
        <p className="note">
          {listed.length} of {count(total, "topic_name" in found ? "topic" : "identity")}.{" "}
          <button type="button" className="more" onClick={more}>
            Show more
          </button>
        </p>
      )}
      <WhyNot kind={"topic_name" in found ? "topic" : "identity"} ask={ask} />
    </section>
  );
}

/** One of them: who was asked for, somebody to ask for, or others who cannot be. */
function Who({ each, ask }: { each: Contender; ask: (who: string) => void }) {
  const { id, name } = each;
  if (each.asked) return <b>{name}</b>;
  if (id === null) return <>{name}</>;
  return (
    <button type="button" className="more" onClick={() => ask(id)}>
      {name}
    </button>
  );
}

/** Ask why somebody else has nothing of the line, or something. */
function WhyNot({ kind, ask }: { kind: string; ask: (who: string) => void }) {
  const id = useId();
  const [who, setWho] = useState("");
  return (
    <form
      className="why-not"
      onSubmit={(event) => {
        event.preventDefault();
        if (who.trim()) ask(who.trim());
      }}
    >
      <label htmlFor={id}>Why not another {kind}?</label>
      <input
        id={id}
        className="field"
        value={who}
        maxLength={255}
        placeholder={kind === "topic" ? "its name" : "its id"}
        onChange={(event) => setWho(event.target.value)}
      />
      <button type="submit" className="button">
        Explain
      </button>
    </form>
  );
}
