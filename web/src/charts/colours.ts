import { isNobody } from "../format/names";

const SLOTS = 8;
const known = new Map<string, Map<string, number>>();

/** The colour class of each value: it keeps its colour while the dimension stays, whatever is filtered. */
export function colours(by: string, values: readonly (string | null)[]): string[] {
  const slots = known.get(by) ?? new Map<string, number>();
  known.set(by, slots);
  const wanted = values.filter((each) => !isNobody(by, each)).map(String);
  const taken = new Set(wanted.map((each) => slots.get(each)).filter((each) => each !== undefined));
  for (const value of wanted) {
    if (slots.has(value)) continue;
    const free = Array.from({ length: SLOTS }, (_, slot) => slot + 1).find((slot) => !taken.has(slot)) ?? SLOTS;
    slots.set(value, free);
    taken.add(free);
  }
  resolve(slots, wanted);
  return values.map((each) => (isNobody(by, each) ? "k-nobody" : `k${slots.get(String(each))}`));
}

/** Two values that met their slot at different times may meet here: the later one moves to a free slot. */
function resolve(slots: Map<string, number>, wanted: readonly string[]): void {
  const seen = new Set<number>();
  const free = () => Array.from({ length: SLOTS }, (_, slot) => slot + 1).find((slot) => !inUse(slot));
  const inUse = (slot: number) => seen.has(slot) || wanted.some((each) => slots.get(each) === slot);
  for (const value of wanted) {
    const slot = slots.get(value) ?? SLOTS;
    if (seen.has(slot)) slots.set(value, free() ?? slot);
    seen.add(slots.get(value) ?? slot);
  }
}
