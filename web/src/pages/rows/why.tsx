import type { Row } from "../../api/shapes";
import { useHere } from "../../app/router";
import { full } from "../../format/days";
import { exact, percent, split } from "../../format/money";
import { code, label, method, reason } from "../../format/names";
import { Drawer } from "../../ui/drawer";
import { readView, toggle } from "../../url/view";

const ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"];

/** Why this amount: what the row itself carries, in five steps. */
export function Why({ row, currency, onClose }: { row: Row; currency: string; onClose: () => void }) {
  const here = useHere();
  const who = label("identity_id", row.identity_id, row.identity_name);
  const what = label("resource_id", row.resource_id, row.resource_name);
  const { line_id, portion, portion_share, policy, chain_position, identity_usage, total_usage } = row.metadata;
  const [amount, more] = split(row.amount);
  const whole = { ...readView(""), period: here.view.period, start: here.view.start, end: here.view.end };
  const position = Number(chain_position ?? 1);
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
        <li>
          <h3>The bill</h3>
          <p>
            {code(row.product_type)} of <b>{what.name}</b>
          </p>
          <p className="note">
            {row.product_type} · {row.resource_id}
            {line_id != null && ` · line ${line_id}`}
          </p>
        </li>
        <li>
          <h3>The portion</h3>
          <p>
            {portion == null
              ? "the whole line"
              : `portion ${portion} of the policy takes ${percent(Number(portion_share ?? 1), 0)} of the line`}
          </p>
          {policy != null && <p className="note">policy {policy}</p>}
        </li>
        <li>
          <h3>The way</h3>
          <p>
            the {ORDINALS[position - 1] ?? `${position}th`} way of its chain applied: {method(row.allocation_method)}
          </p>
          {row.allocation_detail && <p className="note">{reason(row.allocation_detail)}</p>}
        </li>
        <li>
          <h3>The share</h3>
          <Share name={who.name} used={identity_usage} of={total_usage} />
        </li>
        <li>
          <h3>The amount</h3>
          <p className="num">{exact(row.amount, currency)}</p>
        </li>
      </ol>
      <p className="tools">
        <a className="button" href={here.to(toggle(whole, "identity_id", row.identity_id), "item")}>
          All of {who.name}
        </a>
        <a className="button" href={here.to(toggle(whole, "resource_id", row.resource_id), "item")}>
          All of {what.name}
        </a>
      </p>
    </Drawer>
  );
}

type Measured = Row["metadata"][string] | undefined;

function Share({ name, used, of }: { name: string; used: Measured; of: Measured }) {
  if (used == null || of == null) return <p>{name} has one of the equal shares, or all of it</p>;
  const part = Number(of) > 0 ? Number(used) / Number(of) : null;
  return (
    <>
      <p className="num">
        {name} used {grouped(used)} of {grouped(of)}
      </p>
      <span className="gauge" aria-hidden="true">
        <i style={{ width: `${(part ?? 0) * 100}%` }} />
      </span>
      <p className="note">{percent(part, 4)}</p>
    </>
  );
}

function grouped(number: NonNullable<Measured>): string {
  const [whole = "", fraction] = String(number).split(".");
  return whole.replace(/\B(?=(\d{3})+(?!\d))/g, ",") + (fraction ? `.${fraction}` : "");
}
