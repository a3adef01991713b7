import type { ReactNode } from "react";
import type { Page } from "../../api/shapes";
import { count } from "../../format/days";
import { grouped } from "../../format/formats";
import { NothingHere } from "../../ui/nothing";
import { Answered, Bone } from "../../ui/states";
import { type Column, MOST_ROWS, usePages, VirtualTable } from "../../ui/virtual";
import type { Filter, PeriodQuery } from "../../url/view";

/** What is asked of a list of rows: a period, a moment, and filters. */
export interface RowsAsked {
  query: PeriodQuery & { as_of?: string };
  filters: readonly Filter[];
}

interface Props<T> {
  /** What one row is called. */
  one: string;
  note: string;
  /** Names the list: other words, another list. */
  list: readonly unknown[];
  fetch: (page: number, size: number, signal: AbortSignal) => Promise<Page<T>>;
  columns: readonly Column<T>[];
  action?: ReactNode;
  onOpen?: (row: T) => void;
}

/** A long list in a card, with every state that it can be in. */
export function LongList<T>({ one, note, list, fetch, columns, action, onOpen }: Props<T>) {
  const { first, rowAt, onRange } = usePages<T>(list, fetch);
  return (
    <Answered answer={first} skeleton={<Bone height={36} />}>
      {({ total }, shown) =>
        total === 0 ? (
          <NothingHere title={`No ${one}s in this view`} />
        ) : (
          <section className="card rows" aria-labelledby="rows-title">
            <header>
              <h2 id="rows-title">{count(total, one)}</h2>
              <span className="note">{note}</span>
              <span className="fill" />
              {action}
            </header>
            {total > MOST_ROWS && (
              <p className="note cap">
                The first {grouped(MOST_ROWS)} are shown. Narrow the view, or take all of them as CSV.
              </p>
            )}
            <VirtualTable
              key={shown}
              label={`Table of ${one}s`}
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
