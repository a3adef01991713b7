import type { Policy } from "../../api/shapes";
import { percent } from "../../format/money";

/** The portions of a policy: how much of a line each is, and what is tried for it. */
export function Portions({ of }: { of: Policy["portions"] }) {
  return of.map((portion) => (
    <div key={portion.number}>
      {percent(Number(portion.share), 0)} by <code>{portion.methods.join(", else ")}</code>
    </div>
  ));
}
