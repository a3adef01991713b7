import { type RefObject, useState } from "preact/compat";

export type Direction = "left" | "right" | "up" | "down" | "first" | "last";

const KEYS: Record<string, Direction> = {
  ArrowLeft: "left",
  ArrowRight: "right",
  ArrowUp: "up",
  ArrowDown: "down",
  Home: "first",
  End: "last",
};

/** Parts of a box of which Tab reaches one, `current`, and arrow keys the others from there. Each part carries its
 * number as `data-part`; `next` says which one lies in a direction. */
export function useRoving(
  box: RefObject<HTMLElement | null>,
  parts: number,
  usual: number,
  next: (from: number, direction: Direction) => number,
): { current: number; onKeyDown: (event: KeyboardEvent) => void } {
  const [walked, setWalked] = useState<number | null>(null);
  const current = walked !== null && walked < parts ? walked : usual;
  const onKeyDown = (event: KeyboardEvent) => {
    const direction = KEYS[event.key];
    if (direction === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const focused = Number(document.activeElement?.getAttribute("data-part") ?? current);
    const to = Math.max(0, Math.min(parts - 1, next(focused, direction)));
    setWalked(to);
    box.current?.querySelector<HTMLElement>(`[data-part="${to}"]`)?.focus();
  };
  return { current, onKeyDown };
}
