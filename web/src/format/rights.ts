/** Rights and scopes in words. */
import type { Right, Scope } from "../api/shapes";
import { dimension, label } from "./names";

/** Every right in the order of the list, and what it allows. */
export const RIGHTS: readonly [Right, string][] = [
  ["read", "see costs and their reasons"],
  ["export", "download files"],
  ["tag", "change tags"],
  ["run", "start runs"],
  ["close", "close months"],
  ["admin", "change cost categories, and reopen months"],
];

const REFUSED: Partial<Record<Right, string>> = {
  export: "You may not download files",
  tag: "You may not change tags",
  run: "You may not start runs",
  close: "You may not close months",
  admin: "You may not change cost categories",
};

/** Says what the reader may not do, and which right is missing. */
export function refused(right: Right): string {
  return `${REFUSED[right] ?? "You may not do this"}: your role has no right “${right}”.`;
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

const SCOPE_NAMES: Record<string, string> = { cluster_id: "Cluster" };

/** `payments, search or billing`; a condition without values lets nothing through. */
export function either(values: readonly string[]): string {
  if (values.length === 0) return "none";
  if (values.length === 1) return values[0] ?? "";
  return `${values.slice(0, -1).join(", ")} or ${values.at(-1)}`;
}

/** A scope in one line: `Cost centre is payments or search, and Environment is env-1`. */
export function inOneLine(scope: Scope): string {
  return conditions(scope)
    .map(({ what, values }) => `${what} is ${either(values)}`)
    .join(", and ");
}
