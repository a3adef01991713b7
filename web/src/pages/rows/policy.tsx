import { useState } from "react";
import { usePolicies } from "../../api/questions";
import type { Policy } from "../../api/shapes";
import { useHere } from "../../app/router";
import { full } from "../../format/days";
import { percent } from "../../format/money";
import { Answered, Bone } from "../../ui/states";
import { Methods } from "../policies/portions";

const SOURCES: Record<Policy["source"], string> = {
  shipped: "It comes with the service.",
  configured: "It is from the configuration.",
  recorded: "It was in force then; another one is now.",
  unknown: "No policy knows this product.",
};

const NOTES = { shipped: "as shipped", configured: "as configured", recorded: "in force then" };

/** What a row was split by: its hash, and on demand its text. */
export function PolicyText({ hash, product, source }: { hash: string; product: string; source: keyof typeof NOTES }) {
  const [open, setOpen] = useState(false);
  return (
    <details className="note" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        policy {product}, {NOTES[source]} ({hash})
      </summary>
      {open && <Text hash={hash} product={product} />}
    </details>
  );
}

function Text({ hash, product }: { hash: string; product: string }) {
  const query = usePolicies(useHere().tenant ?? "", hash, product);
  return (
    <Answered answer={query} skeleton={<Bone height={4} />}>
      {({ items: [policy] }) => (policy ? <Portions policy={policy} /> : <p>Its text is not recorded.</p>)}
    </Answered>
  );
}

function Portions({ policy }: { policy: Policy }) {
  return (
    <div>
      <p>
        {SOURCES[policy.source]}
        {policy.first_used_at && ` First used on ${full(policy.first_used_at)}.`}
      </p>
      <ol className="portions">
        {policy.portions.map((each) => (
          <li key={each.number}>
            Portion {each.number}, {percent(Number(each.share), 0)} of the line: <Methods of={each.methods} />
          </li>
        ))}
      </ol>
    </div>
  );
}
