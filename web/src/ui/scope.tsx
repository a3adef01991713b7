import type { Scope } from "../api/shapes";
import { conditions, either } from "../format/rights";
import { say } from "../words/say";
import { Icon } from "./icons";

/** The conditions of what the reader may see, beside the filters of the view; they cannot be removed. */
export function ScopeChips({ scope }: { scope: Scope }) {
  return (
    <>
      {conditions(scope).map(({ what, values }) => (
        <span className="chip locked" key={what} title={say("What you may see")}>
          <Icon name="lock" />
          <span className="cut">
            <span className="sr">{say("You see only: ")}</span>
            {what} <b>{either(values)}</b>
          </span>
        </span>
      ))}
    </>
  );
}
