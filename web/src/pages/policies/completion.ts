/** What can follow in the text of policies. */
import type { Policy } from "../../api/shapes";

/** How many suggestions are shown. */
const MOST = 8;
const KEYS = ["portions:", "share:", "try:"];
const METHODS = ["even(active)", "even(period)", "even(owners)", "owner", "proportional", "unallocated"];
/** The word that is being written: also `usage(bytes_in + b`, up to its last measure. */
const WORD = /[\w*]+\(?[\w]*$/;

/** The words that policies can have: product types, keys, and methods with the measures that are known. */
export function wordsOf(policies: readonly Policy[]): string[] {
  const methods = policies.flatMap(({ portions }) => portions.flatMap((each) => each.methods));
  const products = policies.map((each) => `${each.product_type}:`);
  return [...new Set([...KEYS, ...METHODS, ...methods, ...products])].sort();
}

/** What the word before the caret can become: it begins so, whatever its case. */
export function completions(text: string, caret: number, words: readonly string[]): string[] {
  const word = WORD.exec(text.slice(0, caret))?.[0].toLowerCase();
  if (!word) return [];
  return words.filter((each) => each.toLowerCase().startsWith(word) && each.toLowerCase() !== word).slice(0, MOST);
}

/** The text with the word before the caret completed, and where the caret is then. */
export function completed(text: string, caret: number, word: string): { text: string; caret: number } {
  const before = text.slice(0, caret).replace(WORD, "");
  return { text: before + word + text.slice(caret), caret: before.length + word.length };
}
