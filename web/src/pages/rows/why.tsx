import type { ReactNode } from "react";
import type { Row } from "../../api/shapes";
import { useHere } from "../../app/router";
import { full } from "../../format/days";
import { exact, split } from "../../format/money";
import { label } from "../../format/names";
import { Drawer } from "../../ui/drawer";
import { readView, toggle } from "../../url/view";
import { stepsOf } from "./steps";

/** One step from the bill to an amount, in words. */
export interface Step {
  title: string;
  text: ReactNode;
  note?: string | undefined;
  /** A share of a whole, from 0 to 1. */
  share?: number | undefined;
}

/** Why this amount: from the bill to the share, step by step. */
export function Why({ row, currency, onClose }: { row: Row; currency: string; onClose: () => void }) {
  const here = useHere();
  const [amount, more] = split(row.amount);
  const { period, start, end } = here.view;
  const whole = { ...readView(""), period, start, end };
  const line = row.metadata.line_id;
  return (
    <Drawer title="Why this amount?" onClose={onClose}>
      <p className="whole" title={exact(row.amount, currency)}>
        {amount}
        <span>{more}</span>
      </p>
      <p className="note">
        {currency} on {full(row.timestamp)}
      </p>
      <ol className="steps">
        {stepsOf(row, currency).map((step) => (
          <li key={step.title}>
            <h3>{step.title}</h3>
            <p>{step.text}</p>
            {step.share !== undefined && (
              <span className="gauge" aria-hidden="true">
                <i style={{ width: `${step.share * 100}%` }} />
              </span>
            )}
            {step.note && <p className="note">{step.note}</p>}
          </li>
        ))}
      </ol>
      <p className="tools">
        <a className="button" href={here.to(toggle(whole, "identity_id", row.identity_id), "item")}>
          All of {label("identity_id", row.identity_id, row.identity_name).name}
        </a>
        <a className="button" href={here.to(toggle(whole, "resource_id", row.resource_id), "item")}>
          All of {label("resource_id", row.resource_id, row.resource_name).name}
        </a>
        {line != null && (
          <a className="button" href={here.to({ ...whole, extra: { line_id: String(line) } })}>
            All shares of this line
          </a>
        )}
      </p>
    </Drawer>
  );
}
