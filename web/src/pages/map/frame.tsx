import type { ReactNode } from "preact/compat";
import { useHere } from "../../app/router";
import type { Tone } from "../../charts/ribbons";
import { change } from "../../format/money";
import { dimension } from "../../format/names";
import { ratio, type Units } from "../../money/money";
import { Card } from "../../ui/card";
import { extra } from "../../url/view";
import { say } from "../../words/say";

const NOTABLE = 0.02;

export const MARK: Record<Tone, string> = { up: "▲", down: "▼", same: "", new: "" };

/** How an amount changed, as far as it is notable. */
export function toneOf(amount: Units, previous: Units | null): Tone {
  const found = change(amount, previous);
  if (!found || previous === null) return "same";
  if (found.direction === "new") return "new";
  const part = ratio(found.amount, previous < 0n ? -previous : previous);
  return part === null || Math.abs(part) < NOTABLE ? "same" : part > 0 ? "up" : "down";
}

interface Props {
  title: string;
  note: string;
  /** What the map can end with, and what it does. */
  ends: readonly string[];
  end: string;
  children: ReactNode;
}

const PARTS: Record<string, string> = { identities: say("Identities"), topics: say("Topics") };

/** The card of a map: what it ends with, the map, and what its colours mean. */
export function MapCard({ title, note, ends, end, children }: Props) {
  const here = useHere();
  return (
    <Card
      title={title}
      note={note}
      action={
        <nav className="segments" aria-label={say("Last column")}>
          {ends.map((each) => (
            <a
              key={each}
              href={here.to(extra(here.view, "to", each))}
              data-replace=""
              aria-current={each === end ? "true" : undefined}
            >
              {PARTS[each] ?? dimension(each)}
            </a>
          ))}
        </nav>
      }
    >
      {children}
      <p className="legend">
        <span>
          <i className="swatch tone-up" />
          {say("▲ costs at least 2 % more")}
        </span>
        <span>
          <i className="swatch tone-down" />
          {say("▼ at least 2 % less")}
        </span>
        <span>
          <i className="swatch k-nobody" />
          {say("about the same")}
        </span>
        <span>
          <i className="swatch tone-new" />
          {say("new [an amount]")}
        </span>
      </p>
    </Card>
  );
}
