import { isNobody } from "../format/names";

const SLOTS = 8;

/**
 * The colour class of each value, the largest first: it follows from the name, so that everybody who opens a link sees
 * the same colours. Of two values that want one colour, the larger has it, and the other gets the next one that is free.
 */
export function colours(by: string, values: readonly (string | null)[]): string[] {
  const taken = new Set<number>();
  return values.map((value) => {
    if (isNobody(by, value)) return "k-nobody";
    const wanted = hash(String(value)) % SLOTS;
    const order = Array.from({ length: SLOTS }, (_, step) => (wanted + step) % SLOTS);
    const slot = order.find((each) => !taken.has(each)) ?? wanted;
    taken.add(slot);
    return `k${slot + 1}`;
  });
}

/** FNV-1a, in 32 bits. */
function hash(text: string): number {
  return Array.from(text).reduce(
    (sum, letter) => Math.imul(sum ^ (letter.codePointAt(0) ?? 0), 0x01000193) >>> 0,
    0x811c9dc5,
  );
}
