import type { Changes } from "../../api/shapes";
import type { Moved } from "../../charts/movers";
import { read } from "../../money/money";
import { say } from "../../words/say";

type Effects = Changes["totals"]["effects"];

const NAMES: Record<keyof Effects, string> = {
  calendar: say("Number of days"),
  quantity: say("Quantity billed"),
  price: say("Price"),
  policy: say("Way of splitting"),
  share: say("Share of the usage"),
  ownership: say("Owners and members"),
  correction: say("Charges and refunds"),
  new: say("New [costs]"),
  gone: say("Gone [costs]"),
};

/** The effects that are not zero, the largest first. */
export function effectsOf(effects: Effects): Moved[] {
  return (Object.keys(NAMES) as (keyof Effects)[])
    .map((key) => ({ key, name: NAMES[key], difference: read(effects[key]) }))
    .filter((each) => each.difference !== 0n)
    .sort((a, b) => (size(a) < size(b) ? 1 : size(a) > size(b) ? -1 : 0));
}

function size({ difference }: Moved): bigint {
  return difference < 0n ? -difference : difference;
}
