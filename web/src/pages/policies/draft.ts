/** Policies as text, as the configuration has them. */
import type { Policy } from "../../api/shapes";
import { addMonths, type Day, firstOfMonth } from "../../calendar/days";

const INDENT = "  ";

/** One policy in YAML. Of what the service tells, every text can stand in YAML between quotes as it does in JSON. */
function written({ product_type, portions }: Policy): string {
  const each = portions.map(
    ({ share, methods }) =>
      `${INDENT}${INDENT}- {share: ${JSON.stringify(share)}, try: [${methods.map((one) => JSON.stringify(one)).join(", ")}]}`,
  );
  return [`${JSON.stringify(product_type)}:`, `${INDENT}portions:`, ...each].join("\n");
}

/** What the configuration says now: the draft that changes nothing. */
export function ownOf(policies: readonly Policy[]): string {
  return policies
    .filter((each) => each.source === "configured")
    .map(written)
    .join("\n");
}

/** A draft with a policy added at its end; one that it has already stays as it is. */
export function withPolicy(draft: string, policy: Policy): string {
  const name = policy.product_type;
  const isThere = draft.split("\n").some((line) => line === `${name}:` || line === `${JSON.stringify(name)}:`);
  return isThere ? draft : [draft.trimEnd(), written(policy)].filter(Boolean).join("\n");
}

/** A draft as a version of `allocation_policies` that begins with the month after a day. */
export function versionOf(draft: string, today: Day): string {
  const lines = draft.trimEnd().split("\n");
  const policies = lines.map((line) => (line === "" ? line : `${INDENT}${INDENT}${line}`));
  const begins = addMonths(firstOfMonth(today), 1);
  return [
    "# One more entry of the list allocation_policies; say why in `reason`.",
    `- effective_from: ${begins}`,
    `${INDENT}reason: ""`,
    `${INDENT}policies:`,
    ...policies,
    "",
  ].join("\n");
}
