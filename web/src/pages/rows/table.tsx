import { useEffect, useRef, useState } from "react";
import type { Row } from "../../api/shapes";
import { full } from "../../format/days";
import { exact, split } from "../../format/money";
import { code, label, method, reason } from "../../format/names";
import { Scroller } from "../../ui/scroller";

const HEIGHT = 40;
const EXTRA = 8;

interface Props {
  total: number;
  currency: string;
  rowAt: (index: number) => Row | undefined;
  onRange: (from: number, to: number) => void;
  onWhy: (row: Row) => void;
}

/** A table of which only the rows on the screen are there; the empty rows before and behind keep its height. */
export function RowsTable({ total, currency, rowAt, onRange, onWhy }: Props) {
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
    <Scroller ref={box} label="Table of rows">
      <table className="table" aria-rowcount={total + 1}>
        <colgroup>
          <col style={{ width: "8.5rem" }} />
          <col style={{ width: "20%" }} />
          <col style={{ width: "22%" }} />
          <col style={{ width: "14%" }} />
          <col />
          <col style={{ width: "13rem" }} />
        </colgroup>
        <thead>
          <tr aria-rowindex={1}>
            <th scope="col">Day</th>
            <th scope="col">Who</th>
            <th scope="col">For what</th>
            <th scope="col">Product</th>
            <th scope="col">How</th>
            <th scope="col" className="end">
              Amount{currency && `, ${currency}`}
            </th>
          </tr>
        </thead>
        <tbody>
          <Spacer rows={from} />
          {Array.from({ length: to - from }, (_, n) => {
            const row = rowAt(from + n);
            // biome-ignore lint/suspicious/noArrayIndexKey: a row is known by its place
            return <OneRow key={from + n} index={from + n} row={row} currency={currency} onWhy={onWhy} />;
          })}
          <Spacer rows={total - to} />
        </tbody>
      </table>
    </Scroller>
  );
}

function Spacer({ rows }: { rows: number }) {
  if (rows <= 0) return null;
  return (
    // biome-ignore lint/a11y/noAriaHiddenOnFocusable: a row that only keeps a height, and that nothing focuses
    <tr aria-hidden="true">
      <td colSpan={6} style={{ height: `${rows * HEIGHT}px`, padding: 0, border: 0 }} />
    </tr>
  );
}

interface OneRowProps {
  index: number;
  row: Row | undefined;
  currency: string;
  onWhy: (row: Row) => void;
}

function OneRow({ index, row, currency, onWhy }: OneRowProps) {
  if (!row)
    return (
      <tr aria-rowindex={index + 2}>
        <td colSpan={6} className="quiet">
          …
        </td>
      </tr>
    );
  const who = label("identity_id", row.identity_id, row.identity_name);
  const what = label("resource_id", row.resource_id, row.resource_name);
  const [amount, more] = split(row.amount);
  return (
    <tr aria-rowindex={index + 2} onClick={() => onWhy(row)}>
      <td className="num">{full(row.timestamp)}</td>
      <td>
        <button type="button" className="pair">
          <b className="cut">{who.name}</b>
          <span className="quiet small cut">{who.id ?? ""}</span>
          <span className="sr">: why this amount?</span>
        </button>
      </td>
      <td>
        <span className="pair">
          <b className="cut">{what.name}</b>
          <span className="quiet small cut">{what.id}</span>
        </span>
      </td>
      <td title={row.product_type}>{code(row.product_type)}</td>
      <td>
        <span className={`badge ${row.cost_type}`}>{row.cost_type}</span> <How row={row} />
      </td>
      <td title={exact(row.amount, currency)}>
        <span className="decimals">
          {amount}
          <span>{more}</span>
        </span>
      </td>
    </tr>
  );
}

function How({ row }: { row: Row }) {
  const asIntended = !row.allocation_detail || row.allocation_detail.endsWith("_ALLOCATION");
  return (
    <span className="quiet">{asIntended ? method(row.allocation_method) : reason(row.allocation_detail ?? "")}</span>
  );
}
