import { createContext, type ReactNode, useContext, useState } from "preact/compat";
import type { Dates } from "../url/period";

type Pointed = [days: Dates | null, point: (days: Dates | null) => void];

const PointedContext = createContext<Pointed>([null, () => {}]);

/** The days that are pointed at in one of several charts over the same days, and how to point at others. */
export const usePointed = () => useContext(PointedContext);

/** Its charts mark the same days. Only these are drawn again when others are pointed at. */
export function InStep({ children }: { children: ReactNode }) {
  return <PointedContext value={useState<Dates | null>(null)}>{children}</PointedContext>;
}
