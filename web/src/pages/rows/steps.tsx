import type { Row } from "../../api/shapes";
import { exact, grouped, percent } from "../../format/money";
import { code, label, method, reason } from "../../format/names";
import type { Step } from "./why";

const ORDINALS = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"];

/** The steps to an amount, as far as the row itself carries them. */
export function stepsOf(row: Row, currency: string): Step[] {
  const { line_id, portion, portion_share, policy, chain_position } = row.metadata;
  const what = label("resource_id", row.resource_id, row.resource_name).name;
  const position = Number(chain_position ?? 1);
  const way = `the ${ORDINALS[position - 1] ?? `${position}th`} way of its chain`;
  return [
    {
      title: "The bill",
      text: (
        <>
          {code(row.product_type)} of <b>{what}</b>
        </>
      ),
      note: [row.product_type, row.resource_id, line_id != null && `line ${line_id}`].filter(Boolean).join(" · "),
    },
    {
      title: "The portion",
      text:
        portion == null
          ? "the whole line"
          : `portion ${portion} of the policy takes ${percent(Number(portion_share ?? 1), 0)} of the line`,
      note: policy == null ? undefined : `policy ${policy}`,
    },
    {
      title: "The way",
      text: `${way} applied: ${method(row.allocation_method)}`,
      note: row.allocation_detail ? reason(row.allocation_detail) : undefined,
    },
    shareOf(row),
    { title: "The amount", text: <span className="num">{exact(row.amount, currency)}</span> },
  ];
}

function shareOf(row: Row): Step {
  const { identity_usage: used, total_usage: whole } = row.metadata;
  const { name } = label("identity_id", row.identity_id, row.identity_name);
  const title = "The share";
  if (used == null || whole == null) return { title, text: `${name} has one of the equal shares, or all of it` };
  const share = Number(whole) > 0 ? Number(used) / Number(whole) : 0;
  const text = (
    <span className="num">
      {name} used {grouped(String(used))} of {grouped(String(whole))}
    </span>
  );
  return { title, text, share, note: percent(share, 4) };
}
