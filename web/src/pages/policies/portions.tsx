import type { Policy } from "../../api/shapes";
import { percent } from "../../format/money";
import { say } from "../../words/say";

/** The methods that are tried for a portion, one after another. */
export function Methods({ of }: { of: readonly string[] }) {
  return of.map((method, n) => (
    <span key={method}>
      {n > 0 && say(", else ")}
      <code>{method}</code>
    </span>
  ));
}

/** The portions of a policy: how much of a line each is, and what is tried for it. */
export function Portions({ of }: { of: Policy["portions"] }) {
  return of.map((portion) => (
    <div key={portion.number}>
      {say("{share} by {methods}", {
        share: percent(Number(portion.share), 0),
        methods: <Methods of={portion.methods} />,
      })}
    </div>
  ));
}
