import type { ReactNode } from "preact/compat";
import { pixels, ratio, type Units } from "../money/money";
import { Amount, Delta, share } from "../ui/card";
import { Icon } from "../ui/icons";
import { say } from "../words/say";

export interface Ranked {
  key: string;
  name: string;
  id: string | null;
  title: string;
  colour: string;
  amount: Units;
  previous: Units | null;
  /** Where it leads: the same view with this as a filter, or without it. */
  href: string | null;
  /** The same view without it. */
  not: string | null;
  picked: boolean;
}

interface Props {
  items: readonly Ranked[];
  whole: Units;
  currency: string;
  swatches?: boolean;
  comparable: boolean;
  onPoint?: (key: string | null) => void;
}

/** A ranked list: legend, ranking and filter in one. */
export function RankedList({ items, whole, currency, swatches = false, comparable, onPoint }: Props) {
  const most = Math.max(...items.map((each) => Math.abs(pixels(each.amount))), 0) || 1;
  return (
    <ol className="ranked">
      {items.map((item) => (
        <li key={item.key} onPointerEnter={() => onPoint?.(item.key)} onPointerLeave={() => onPoint?.(null)}>
          <Line item={item} onPoint={onPoint}>
            <span className="who">
              {swatches && <span className={`swatch ${item.colour}`} />}
              <span className={`name cut ${item.id ? "has-id" : ""}`} title={item.title}>
                {item.name}
              </span>
              {item.id && <span className="id cut">{item.id}</span>}
            </span>
            <Amount amount={item.amount} currency={currency} className="amount" />
            <span className="track" aria-hidden="true">
              <i className={item.colour} style={{ width: `${(Math.abs(pixels(item.amount)) / most) * 100}%` }} />
            </span>
            <span className="facts num">
              <span>{ratio(item.amount, whole) === null ? "–" : share(item.amount, whole)}</span>
              {comparable && <Delta amount={item.amount} previous={item.previous} currency={currency} />}
            </span>
          </Line>
          {item.not && (
            <a className="not" href={item.not} title={say("Leave out {name}", item)}>
              <Icon name="minus" />
              <span className="sr">{say("Leave out {name}", item)}</span>
            </a>
          )}
        </li>
      ))}
    </ol>
  );
}

function Line({ item, onPoint, children }: { item: Ranked; onPoint: Props["onPoint"]; children: ReactNode }) {
  if (!item.href) return <div className="row others">{children}</div>;
  return (
    <a
      className={`row ${item.picked ? "picked" : ""}`}
      href={item.href}
      aria-current={item.picked ? "true" : undefined}
      onFocus={() => onPoint?.(item.key)}
      onBlur={() => onPoint?.(null)}
    >
      {children}
    </a>
  );
}
