import { createElement, Fragment, type ReactNode } from "preact/compat";
import { grouped } from "../format/formats.ts";
import { catalogue } from "./catalogue.ts";

/** The names of the values that a text needs: `n` and `name` of `{n} {n|day|days} of {name}`. */
type Needed<Text extends string> = Text extends `${string}{${infer Inside}}${infer Rest}`
  ? (Inside extends `${infer Name}|${string}` ? Name : Inside) | Needed<Rest>
  : never;

type Values<Text extends string, Value> = { [Name in Needed<Text>]: Value };
type Arguments<Text extends string, Value> = [Needed<Text>] extends [never] ? [] : [values: Values<Text, Value>];

/** `{name}`, or `{name|one|many}`. */
export const PLACE = /\{([^{}|]+)(?:\|([^{}|]*)\|([^{}|]*))?\}/;
/** What tells translators which meaning of a word is meant, as in `Open [a month]`. */
const NOTE = / \[[^\]]*\]$/;

/** Say something in the reader's language.
 *
 * @param text What it says in English, by which it is found in the catalogue. `{name}` is replaced by a value, numbers as
 *   the reader's formats have them, and `{n|day|days}` by the first word if `n` is one, and else by the second. A note in
 *   brackets at the end is for translators, and not shown.
 * @returns A text; if one of the values is an element, what Preact draws.
 */
export function say<Text extends string>(text: Text, ...values: Arguments<Text, string | number>): string;
export function say<Text extends string>(text: Text, ...values: Arguments<Text, ReactNode>): ReactNode;
export function say(text: string, values: Readonly<Record<string, ReactNode>> = {}): ReactNode {
  return filled(catalogue[text] ?? text.replace(NOTE, ""), values);
}

/** A text with values in its places. */
export function filled(text: string, values: Readonly<Record<string, string | number>>): string;
export function filled(text: string, values: Readonly<Record<string, ReactNode>>): ReactNode;
export function filled(text: string, values: Readonly<Record<string, ReactNode>>): ReactNode {
  const pieces = text.split(PLACE);
  const parts: ReactNode[] = [];
  // A split by an expression with three groups: text, name, one, many, text, …
  for (let at = 0; at < pieces.length; at += 4) {
    parts.push(pieces[at]);
    const name = pieces[at + 1];
    if (name !== undefined) parts.push(put(values[name], pieces[at + 2], pieces[at + 3]));
  }
  return parts.every(isText) ? parts.join("") : createElement(Fragment, null, ...parts);
}

const isText = (part: ReactNode) => typeof part === "string";

function put(value: ReactNode, one: string | undefined, many: string | undefined): ReactNode {
  if (one !== undefined) return value === 1 ? one : many;
  return typeof value === "number" ? grouped(value) : value;
}
