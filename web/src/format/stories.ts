import type { Anomaly } from "../api/shapes";

/** Whether nobody has put a story aside: it is new, or was worth telling. */
export function isTold({ mark }: Pick<Anomaly, "mark">): boolean {
  return !mark || mark.status === "confirmed";
}
