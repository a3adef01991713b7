/** Rights and scopes in words. */
import type { Right, Scope } from "../api/shapes";
import { say } from "../words/say";
import { dimension, label } from "./names";

/** Every right in the order of the list, and what it allows. */
export const RIGHTS: readonly [Right, string][] = [
  ["read", say("see costs and their reasons")],
  ["export", say("download files")],
  ["tag", say("change tags")],
  ["run", say("start runs")],
  ["close", say("close months")],
  ["admin", say("change cost categories, and reopen months")],
];

const REFUSED: Partial<Record<Right, string>> = {
  export: say("You may not download files"),
  tag: say("You may not change tags"),
  run: say("You may not start runs"),
  close: say("You may not close months"),
  admin: say("You may not change cost categories"),
};

/** Says what the reader may not do, and which right is missing. */
export function refused(right: Right): string {
  return say("{what}: your role has no right “{right}”.", {
    what: REFUSED[right] ?? say("You may not do this"),
    right,
  });
}

/** One condition of a scope in words. */
export interface Condition {
  what: string;
  values: readonly string[];
}

/** The conditions of a scope, such as `Cost centre is` payments or search. */
export function conditions(scope: Scope): Condition[] {
  return Object.entries(scope).map(([name, values]) => ({
    what: SCOPE_NAMES[name] ?? dimension(name),
    values: values.map((value) => label(name, value).name),
  }));
}

const SCOPE_NAMES: Record<string, string> = { cluster_id: say("Cluster") };

/** `payments, search or billing`; a condition without values lets nothing through. */
export function either(values: readonly string[]): string {
  if (values.length === 0) return say("none [of some values]");
  if (values.length === 1) return values[0] ?? "";
  return say("{others} or {last}", { others: values.slice(0, -1).join(", "), last: values.at(-1) ?? "" });
}

/** A scope in one line: `Cost centre is payments or search, and Environment is env-1`. */
export function inOneLine(scope: Scope): string {
  return conditions(scope)
    .map(({ what, values }) => say("{what} is {values}", { what, values: either(values) }))
    .join(say(", and "));
}
