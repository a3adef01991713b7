import type { Changes } from "../../api/shapes";
import type { Moved } from "../../charts/movers";
import { read } from "../../money/money";

type Effects = Changes["totals"]["effects"];

const NAMES: Record<keyof Effects, string> = {
  calendar: "Number of days",
  quantity: "Quantity billed",
  price: "Price",
  policy: "Way of splitting",
  share: "Share of the usage",
  ownership: "Owners and members",
  correction: "Charges and refunds",
  new: "New",
  gone: "Gone",
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
