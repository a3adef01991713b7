import type { Recipient, Stated } from "../../api/shapes";
import { exact, money } from "../../format/money";
import { label, NOBODY } from "../../format/names";
import { say } from "../../words/say";

/** An amount in the service's cents, which add up; its title is the exact amount. */
export function Cents({ of, currency }: { of: Stated; currency: string }) {
  return (
    <span className="num" title={exact(of.amount, currency)}>
      {money(of.rounded, currency)}
    </span>
  );
}

/** What a statement is called. */
export function nameOf(by: string, { value, name }: Pick<Recipient, "value" | "name">): string {
  return value === NOBODY ? say("Costs without an identity") : label(by, value, name).name;
}
