import { useState } from "preact/compat";
import { usePolicies } from "../../api/questions";
import type { Policy } from "../../api/shapes";
import { useHere } from "../../app/router";
import { full } from "../../format/days";
import { percent } from "../../format/money";
import { Answered, Bone } from "../../ui/states";
import { say } from "../../words/say";
import { Methods } from "../policies/portions";

const SOURCES: Record<Policy["source"], string> = {
  shipped: say("It comes with the service."),
  configured: say("It is from the configuration."),
  recorded: say("It was in force then; another one is now."),
  unknown: say("No policy knows this product."),
};

const NOTES = { shipped: say("as shipped"), configured: say("as configured"), recorded: say("in force then") };

/** What a row was split by: its hash, and on demand its text. */
export function PolicyText({ hash, product, source }: { hash: string; product: string; source: keyof typeof NOTES }) {
  const [open, setOpen] = useState(false);
  return (
    <details className="note" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{say("policy {product}, {note} ({hash})", { product, note: NOTES[source], hash })}</summary>
      {open && <Text hash={hash} product={product} />}
    </details>
  );
}

function Text({ hash, product }: { hash: string; product: string }) {
  const query = usePolicies(useHere().tenant ?? "", hash, product);
  return (
    <Answered answer={query} skeleton={<Bone height={4} />}>
      {({ items: [policy] }) => (policy ? <Portions policy={policy} /> : <p>{say("Its text is not recorded.")}</p>)}
    </Answered>
  );
}

function Portions({ policy }: { policy: Policy }) {
  return (
    <div>
      <p>
        {SOURCES[policy.source]}
        {policy.first_used_at && say(" First used on {day}.", { day: full(policy.first_used_at) })}
      </p>
      <ol className="portions">
        {policy.portions.map((each) => (
          <li key={each.number}>
            {say("Portion {number}, {percent} of the line: {ways}", {
              number: each.number,
              percent: percent(Number(each.share), 0),
              ways: <Methods of={each.methods} />,
            })}
          </li>
        ))}
      </ol>
    </div>
  );
}
