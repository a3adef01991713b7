import { useEffect, useRef, useState } from "react";
import { add, type Day, length } from "../format/days";
import { during, extra } from "../url/view";
import { go, useHere } from "./router";

const PAGES: Record<string, string> = { c: "costs", t: "topics", m: "map", r: "rows", u: "unowned", d: "days" };

const HELP: readonly [string, string][] = [
  ["/", "Find anything"],
  ["f", "Add a filter"],
  ["p", "Choose the period"],
  ["[ and ]", "The period before, and after"],
  ["t", "The chart as a table"],
  ["g then c, t, m, r, u, d", "Costs, topics, map, rows, unowned, days"],
  ["Esc", "Close what is open"],
  ["?", "This list"],
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

/** The keys of every page. `shown` is the period on the screen, which `[` and `]` move. */
export function useKeys(openHelp: () => void): void {
  const here = useHere();
  const before = useRef("");
  useEffect(() => {
    const move = (sign: number) => {
      const bounds = document.querySelector<HTMLElement>("[data-start]")?.dataset;
      if (!bounds?.start || !bounds.end) return;
      const by = sign * length(bounds.start as Day, bounds.end as Day);
      go(here.to(during(here.view, add(bounds.start, by), add(bounds.end, by))));
    };
    const onKey = (event: KeyboardEvent) => {
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || !here.tenant) return;
      const dialog = document.querySelector("dialog[open], [popover]:popover-open");
      if (dialog || (writing(event.target) && !(event.target as HTMLElement).matches("[type=range]"))) return;
      const page = before.current === "g" ? PAGES[event.key] : undefined;
      before.current = event.key;
      if (page) go(here.to({ ...here.view, extra: {} }, page));
      else if (event.key === "/") press("find");
      else if (event.key === "f") press("filter");
      else if (event.key === "p") press("period");
      else if (event.key === "t")
        go(here.to(extra(here.view, "table", here.view.extra.table ? null : "1")), { replace: true });
      else if (event.key === "[") move(-1);
      else if (event.key === "]") move(1);
      else if (event.key === "?") openHelp();
      else return;
      event.preventDefault();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [here, openHelp]);
}

export function useHelp(): [boolean, (open: boolean) => void] {
  return useState(false);
}

export function HelpList() {
  return (
    <dl className="facts-list">
      {HELP.map(([key, meaning]) => (
        <div key={key}>
          <dt>{meaning}</dt>
          <dd>
            <kbd>{key}</kbd>
          </dd>
        </div>
      ))}
    </dl>
  );
}
