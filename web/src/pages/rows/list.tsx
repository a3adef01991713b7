import type { ReactNode } from "preact/compat";
import type { Page } from "../../api/shapes";
import { NothingHere } from "../../ui/nothing";
import { Answered, Bone } from "../../ui/states";
import { type Column, MOST_ROWS, usePages, VirtualTable } from "../../ui/virtual";
import type { Filter, PeriodQuery } from "../../url/view";
import { say } from "../../words/say";

/** What rows are called. */
const WORDS = {
  rows: {
    counted: (n: number) => say("{n} {n|row|rows}", { n }),
    none: say("No rows in this view"),
    table: say("Table of rows"),
  },
  lines: {
    counted: (n: number) => say("{n} {n|bill line|bill lines}", { n }),
    none: say("No bill lines in this view"),
    table: say("Table of bill lines"),
  },
};

/** What is asked of a list of rows: a period, a moment, and filters. */
export interface RowsAsked {
  query: PeriodQuery & { as_of?: string };
  filters: readonly Filter[];
}

interface Props<T> {
  of: keyof typeof WORDS;
  note: string;
  /** Names the list: other words, another list. */
  list: readonly unknown[];
  fetch: (page: number, size: number, signal: AbortSignal) => Promise<Page<T>>;
  columns: readonly Column<T>[];
  action?: ReactNode;
  onOpen?: (row: T) => void;
}

/** A long list in a card, with every state that it can be in. */
export function LongList<T>({ of, note, list, fetch, columns, action, onOpen }: Props<T>) {
  const { first, rowAt, onRange } = usePages<T>(list, fetch);
  return (
    <Answered answer={first} skeleton={<Bone height={36} />}>
      {({ total }, shown) =>
        total === 0 ? (
          <NothingHere title={WORDS[of].none} />
        ) : (
          <section className="card rows" aria-labelledby="rows-title">
            <header>
              <h2 id="rows-title">{WORDS[of].counted(total)}</h2>
              <span className="note">{note}</span>
              <span className="fill" />
              {action}
            </header>
            {total > MOST_ROWS && (
              <p className="note cap">
                {say("The first {n} are shown. Narrow the view, or take all of them as CSV.", { n: MOST_ROWS })}
              </p>
            )}
            <VirtualTable
              key={shown}
              label={WORDS[of].table}
              columns={columns}
              total={Math.min(total, MOST_ROWS)}
              rowAt={rowAt}
              onRange={onRange}
              {...(onOpen ? { onOpen } : {})}
            />
          </section>
        )
      }
    </Answered>
  );
}
