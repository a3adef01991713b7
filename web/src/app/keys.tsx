import { useEffect, useRef } from "preact/compat";
import { useAccess } from "../api/me";
import { shifted } from "../url/period";
import { MAIN, toggleTable } from "../url/tables";
import { during, extra } from "../url/view";
import { say } from "../words/say";
import { type PageInfo, pagesFor } from "./pages";
import { go, useHere } from "./router";

/** The keys and what they do. */
export const keysOf = (pages: readonly PageInfo[]): readonly [string, string][] => [
  ["/", say("Find anything")],
  ["f", say("Add a filter")],
  ["p", say("Choose the period")],
  [say("[ and ]"), say("The period before, and after")],
  ["t", say("The chart as a table")],
  ...pages.flatMap((each): [string, string][] => (each.key ? [[`g ${each.key}`, each.title]] : [])),
  [say("Esc"), say("Close what is open")],
  ["?", say("Help")],
];

function writing(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}

/** Press the control that carries a key's name, as a click would. */
function press(name: string): void {
  document.querySelector<HTMLElement>(`[data-key="${name}"]`)?.click();
}

/** The keys of every page. */
export function useKeys(): void {
  const here = useHere();
  const { isKnown, seesAll } = useAccess(here.tenant ?? "");
  const before = useRef("");
  useEffect(() => {
    const pages = pagesFor({ isKnown, seesAll });
    const move = (by: -1 | 1) => {
      const bounds = document.querySelector<HTMLElement>("[data-start]")?.dataset;
      if (!bounds?.start || !bounds.end) return;
      const { start, end } = shifted({ start: bounds.start, end: bounds.end }, by);
      go(here.to(during(here.view, start, end)));
    };
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || !here.tenant) return;
      const dialog = document.querySelector("dialog[open], [popover]:popover-open");
      if (dialog || (writing(event.target) && !(event.target as HTMLElement).matches("[type=range]"))) return;
      const page = before.current === "g" ? pages.find((each) => each.key === event.key)?.page : undefined;
      before.current = event.key;
      if (page) go(here.to({ ...here.view, extra: {} }, page));
      else if (event.key === "/") press("find");
      else if (event.key === "f") press("filter");
      else if (event.key === "p") press("period");
      else if (event.key === "t") go(here.to(toggleTable(here.view, MAIN)), { replace: true });
      else if (event.key === "[") move(-1);
      else if (event.key === "]") move(1);
      else if (event.key === "?") go(here.to(extra(here.view, "help", "keys")));
      else return;
      event.preventDefault();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [here, isKnown, seesAll]);
}
