import type { Simulation } from "../../api/shapes";
import { full } from "../../format/days";
import { exact } from "../../format/money";
import { label } from "../../format/names";
import { Card } from "../../ui/card";
import { reworded } from "../../words/reworded";
import { say } from "../../words/say";
import { stepsOf } from "../rows/steps";

type Example = NonNullable<Simulation["answer"]>["examples"][number];
type Explained = Example["before"];

/** A line that changes most for somebody, explained as it is and as it would be. */
export function Examples({ of, currency }: { of: readonly Example[]; currency: string }) {
  return of.map((each) => {
    const { name } = label("identity_id", each.identity_id, each.before.identity_name);
    return (
      <Card key={each.identity_id} title={say("A line of {name}", { name })} note={full(each.date)}>
        <div className="halves">
          <Side title={say("Now")} found={each.before} currency={currency} />
          <Side title={say("Then")} found={each.after} currency={currency} />
        </div>
      </Card>
    );
  });
}

function Side({ title, found, currency }: { title: string; found: Explained; currency: string }) {
  const amount = found.row?.amount;
  return (
    <section className="stack">
      <h3>
        {title}: <span className="num">{amount ? exact(amount, currency) : say("nothing")}</span>
      </h3>
      <p>{reworded(found.sentence)}</p>
      <ol className="steps">
        {stepsOf(found, currency).map((step) => (
          <li key={step.title}>
            <h4>{step.title}</h4>
            <p>{step.text}</p>
            {step.note && <p className="note">{step.note}</p>}
          </li>
        ))}
      </ol>
    </section>
  );
}
