import { type ReactNode, useId } from "preact/compat";
import { useAccess } from "../api/me";
import { useHere } from "../app/router";
import type { Term } from "../format/glossary";
import { type Change, change, exact, money, percent, signed, split } from "../format/money";
import { ratio, read, type Units, write } from "../money/money";
import { isTable, toggleTable } from "../url/tables";
import { say } from "../words/say";
import { Ask } from "./ask";
import { CsvLink, type File } from "./csv";
import { Icon } from "./icons";
import { Popover } from "./popover";

interface CardProps {
  title: ReactNode;
  /** The word of the title that the glossary explains. */
  term?: Term;
  note?: ReactNode;
  action?: ReactNode;
  className?: string;
  /** What the card shows, for its menu: as a file, and the name of its chart, which can be a table, too. */
  file?: File | undefined;
  chart?: string;
  children: ReactNode;
}

export function Card({ title, term, note, action, className = "", file, chart, children }: CardProps) {
  const id = useId();
  const { may } = useAccess(useHere().tenant ?? "");
  const offered = may("export") ? file : undefined;
  return (
    <section className={`card ${className}`} aria-labelledby={id}>
      <header>
        <h2 id={id}>{title}</h2>
        {term && <Ask about={term} />}
        {note && <span className="note">{note}</span>}
        <span className="fill" />
        {action}
        {(offered || chart) && <Menu of={title} file={offered} chart={chart} />}
      </header>
      {children}
    </section>
  );
}

function Menu({ of, file, chart }: { of: ReactNode; file: File | undefined; chart: string | undefined }) {
  const { view, to } = useHere();
  const name = typeof of === "string" ? say("More about {name}", { name: of }) : say("More about this card");
  return (
    <Popover name={name} icon="menu" plain bare="square" label={<span className="sr">{name}</span>}>
      {(close) => (
        <ul>
          {chart && (
            <li>
              <a href={to(toggleTable(view, chart))} data-replace="" onClick={close}>
                <Icon name={isTable(view, chart) ? "costs" : "table"} />
                {isTable(view, chart) ? say("Show the chart") : say("Show as a table")}
              </a>
            </li>
          )}
          {file && (
            <li>
              <CsvLink file={file} onClick={close} />
            </li>
          )}
        </ul>
      )}
    </Popover>
  );
}

/** An amount to its last digit: the cents stand out, what is behind them is grey; columns align at the point. */
export function Exact({ amount, currency }: { amount: Units | string; currency: string }) {
  const [cents, more] = split(typeof amount === "string" ? amount : write(amount), currency);
  return (
    <span className="decimals" title={exact(amount, currency)}>
      {cents}
      <span>{more}</span>
    </span>
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

/** Three cells of a table: an amount before and after, and what it changes by. */
export function BeforeAndAfter({
  before,
  after,
  delta,
  currency,
}: Record<"before" | "after" | "delta" | "currency", string>) {
  return (
    <>
      <td className="end">
        <Amount amount={before} currency={currency} />
      </td>
      <td className="end">
        <Amount amount={after} currency={currency} />
      </td>
      <td className="end num">{signed(read(delta), currency)}</td>
    </>
  );
}

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
