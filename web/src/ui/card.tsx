import { type ReactNode, useId } from "react";
import { type Change, change, exact, money, percent, signed } from "../format/money";
import { ratio, type Units } from "../money/money";

interface CardProps {
  title: ReactNode;
  note?: ReactNode;
  action?: ReactNode;
  className?: string;
  children: ReactNode;
}

export function Card({ title, note, action, className = "", children }: CardProps) {
  const id = useId();
  return (
    <section className={`card ${className}`} aria-labelledby={id}>
      <header>
        <h2 id={id}>{title}</h2>
        {note && <span className="note">{note}</span>}
        <span className="fill" />
        {action}
      </header>
      {children}
    </section>
  );
}

/** A rounded amount; what it stands for, to the last digit, is its title. */
export function Amount({
  amount,
  currency,
  className = "",
}: {
  amount: Units | string;
  currency: string;
  className?: string;
}) {
  return (
    <span className={`num ${className}`} title={exact(amount, currency)}>
      {money(amount, currency)}
    </span>
  );
}

const MARKS: Record<Change["direction"], string> = { up: "▲", down: "▼", same: "", new: "" };

/** What changed, in percent; nothing where there is nothing to compare with. */
export function Delta({ amount, previous, currency }: { amount: Units; previous: Units | null; currency: string }) {
  const found = change(amount, previous);
  if (!found) return null;
  return (
    <span
      className={`delta ${found.direction}`}
      title={`${signed(found.amount, currency)} (${exact(found.amount, currency)})`}
    >
      {MARKS[found.direction] && (
        <span className="mark" aria-hidden="true">
          {MARKS[found.direction]}
        </span>
      )}
      {found.text}
    </span>
  );
}

export function share(part: Units, whole: Units): string {
  return percent(ratio(part, whole));
}
