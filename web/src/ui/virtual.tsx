import { useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useCallback, useEffect, useRef, useState } from "preact/compat";
import { type Kept, useAnswer, useAnswers } from "../api/answer";
import type { Page } from "../api/shapes";
import { Scroller } from "./scroller";

const HEIGHT = 40;
const EXTRA = 8;
const SIZE = 200;
/** Browsers do not draw a table of any height. */
export const MOST_ROWS = 200_000;

type Fetch<T> = (page: number, size: number, signal: AbortSignal) => Promise<Page<T>>;

/** The pages of a long list that are on the screen, and the first one, which is `of` the name of its list. `key` names the
 * list. While another list is asked for, the rows of the one before stay. */
export function usePages<T>(key: readonly unknown[], fetch: Fetch<T>) {
  const [pages, setPages] = useState<readonly number[]>([]);
  const client = useQueryClient();
  const name = JSON.stringify(key);
  const question = (page: number) => ({
    key: keyOf(name, page),
    of: name,
    ask: (signal: AbortSignal) => fetch(page, SIZE, signal),
  });
  const first = useAnswer(question(1));
  useAnswers([...new Set(pages)].filter((page) => page > 1).map(question));
  const shown = first.known?.of ?? name;
  const rowAt = useCallback(
    (index: number) =>
      client.getQueryData<Kept<Page<T>, string>>(keyOf(shown, Math.floor(index / SIZE) + 1))?.data.items[index % SIZE],
    [client, shown],
  );
  const onRange = useCallback((from: number, to: number) => {
    const wanted = [Math.floor(from / SIZE) + 1, Math.floor(to / SIZE) + 1];
    setPages((old) => (old[0] === wanted[0] && old[1] === wanted[1] ? old : wanted));
  }, []);
  return { first, rowAt, onRange };
}

const keyOf = (name: string, page: number) => ["page", name, page];

export interface Column<T> {
  name: string;
  width?: string;
  end?: boolean;
  title?: (row: T) => string;
  cell: (row: T, index: number) => ReactNode;
}

interface Props<T> {
  label: string;
  columns: readonly Column<T>[];
  total: number;
  rowAt: (index: number) => T | undefined;
  onRange: (from: number, to: number) => void;
  onOpen?: (row: T) => void;
}

/** A table of which only the rows on the screen are there; the empty rows before and behind keep its height. */
export function VirtualTable<T>({ label, columns, total, rowAt, onRange, onOpen }: Props<T>) {
  const box = useRef<HTMLElement>(null);
  const [[from, to], setRange] = useState<[number, number]>([0, Math.min(total, 40)]);

  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const measure = () => {
      const first = Math.max(0, Math.floor(element.scrollTop / HEIGHT) - EXTRA);
      const last = Math.min(total, Math.ceil((element.scrollTop + element.clientHeight) / HEIGHT) + EXTRA);
      setRange((old) => (old[0] === first && old[1] === last ? old : [first, last]));
    };
    measure();
    element.addEventListener("scroll", measure, { passive: true });
    const observer = new ResizeObserver(measure);
    observer.observe(element);
    return () => {
      element.removeEventListener("scroll", measure);
      observer.disconnect();
    };
  }, [total]);
  useEffect(() => onRange(from, Math.max(from, to - 1)), [from, to, onRange]);

  return (
    <Scroller ref={box} label={label}>
      <table className="table" aria-rowcount={total + 1}>
        <colgroup>
          {columns.map((each) => (
            <col key={each.name} style={{ width: each.width }} />
          ))}
        </colgroup>
        <thead>
          <tr aria-rowindex={1}>
            {columns.map((each) => (
              <th key={each.name} scope="col" className={each.end ? "end" : undefined}>
                {each.name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          <Spacer rows={from} columns={columns.length} />
          {Array.from({ length: to - from }, (_, n) => {
            const index = from + n;
            const row = rowAt(index);
            return (
              <tr key={index} aria-rowindex={index + 2} onClick={onOpen && row && (() => onOpen(row))}>
                {row ? (
                  columns.map((each) => (
                    <td key={each.name} title={each.title?.(row)} className={each.end ? "end" : undefined}>
                      {each.cell(row, index)}
                    </td>
                  ))
                ) : (
                  <td colSpan={columns.length} className="quiet">
                    …
                  </td>
                )}
              </tr>
            );
          })}
          <Spacer rows={total - to} columns={columns.length} />
        </tbody>
      </table>
    </Scroller>
  );
}

function Spacer({ rows, columns }: { rows: number; columns: number }) {
  if (rows <= 0) return null;
  return (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: a row that only keeps a height, and that nothing focuses
    <tr aria-hidden="true">
      <td colSpan={columns} style={{ height: `${rows * HEIGHT}px`, padding: 0, border: 0 }} />
    </tr>
  );
}
