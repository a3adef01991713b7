import { present } from "../api/answer";
import { useTenant } from "../api/questions";
import { useHere } from "../app/router";
import { dimension } from "../format/names";
import { say } from "../words/say";
import { dimensionsOf } from "./filters";
import { Popover } from "./popover";

interface Props {
  label: string;
  by: string;
  /** What is offered at once; all others are in a menu. */
  choices: readonly string[];
}

/** Choose by what costs are broken down. */
export function Dimensions({ label, by, choices }: Props) {
  const here = useHere();
  const tenant = present(useTenant(here.tenant ?? ""));
  const shown = choices.includes(by) ? choices : [...choices, by];
  const choice = (each: string, close?: () => void) => (
    <a
      key={each}
      href={here.to({ ...here.view, by: each })}
      data-replace=""
      aria-current={each === by ? "true" : undefined}
      onClick={close}
    >
      {dimension(each)}
    </a>
  );
  return (
    <>
      <nav className="segments" aria-label={label}>
        {shown.map((each) => choice(each))}
      </nav>
      <Popover name={say("{label} something else", { label })} plain label={say("More")}>
        {(close) => (
          <ul>
            {dimensionsOf(tenant)
              .filter((each) => !choices.includes(each))
              .map((each) => (
                <li key={each}>{choice(each, close)}</li>
              ))}
          </ul>
        )}
      </Popover>
    </>
  );
}
