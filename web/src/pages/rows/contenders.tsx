import { useId, useState } from "preact/compat";
import type { Explained } from "../../api/shapes";
import { grouped } from "../../format/formats";
import { percent } from "../../format/money";
import { Digits } from "../../ui/digits";
import { Table } from "../../ui/table";
import { say } from "../../words/say";
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
  const ofTopic = "topic_name" in found;
  return (
    <section className="contenders">
      <h3>{say("Who shares it")}</h3>
      {listed.length > 0 && (
        <Table
          label={say("Who shares it")}
          heads={[say("Who"), { name: say("Measured"), end: true }, { name: say("Part"), end: true }]}
        >
          {listed.map((each) => (
            <tr key={each.id ?? ""} className={each.asked ? "lit" : undefined}>
              <th scope="row">
                <Who each={each} ask={ask} />
              </th>
              <td className="end">
                {each.value === null ? say("equal [a part]") : <Digits text={grouped(each.value)} />}
              </td>
              <td className="end num">{percent(Number(each.ratio), 2)}</td>
            </tr>
          ))}
        </Table>
      )}
      {total > listed.length && (
        <p className="note">
          {ofTopic
            ? say("{some} of {n} {n|topic|topics}.", { some: listed.length, n: total })
            : say("{some} of {n} {n|identity|identities}.", { some: listed.length, n: total })}{" "}
          <button type="button" className="more" onClick={more}>
            {say("Show more")}
          </button>
        </p>
      )}
      <WhyNot ofTopic={ofTopic} ask={ask} />
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
function WhyNot({ ofTopic, ask }: { ofTopic: boolean; ask: (who: string) => void }) {
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
      <label htmlFor={id}>{ofTopic ? say("Why not another topic?") : say("Why not another identity?")}</label>
      <input
        id={id}
        className="field"
        value={who}
        maxLength={255}
        placeholder={ofTopic ? say("its name [of a topic]") : say("its id [of an identity]")}
        onChange={(event) => setWho(event.currentTarget.value)}
      />
      <button type="submit" className="button">
        {say("Explain")}
      </button>
    </form>
  );
}
