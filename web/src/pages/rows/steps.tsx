import type { ReactNode } from "react";
import type { Explained } from "../../api/shapes";
import { full } from "../../format/days";
import { grouped } from "../../format/formats";
import { exact, percent } from "../../format/money";
import { code, label, method, nameOfPayer } from "../../format/names";
import { Digits } from "../../ui/digits";
import { PolicyText } from "./policy";

/** One step from the bill to an amount, in words. */
export interface Step {
  title: string;
  text: ReactNode;
  note?: string | undefined;
  more?: ReactNode;
  /** A share of a whole, from 0 to 1. */
  share?: number | undefined;
}

/** The five steps to an amount: the bill, the portion of it, the way it is split, the share, and the amount. */
export function stepsOf(found: Explained, currency: string): Step[] {
  return [bill(found), portion(found, currency), way(found), share(found), amount(found, currency)];
}

function bill({ line, date }: Explained): Step {
  const title = "The bill";
  if (!line) return { title, text: "The bill of this day is lost." };
  const what = label("resource_id", line.resource_id, line.resource_name).name;
  const measured = line.quantity && line.unit_price;
  return {
    title,
    text: (
      <>
        {code(line.product_type)} of <b>{what}</b> on {full(date)}:{" "}
        <span className="num">{exact(line.total_cost, line.currency)}</span>
      </>
    ),
    note: [
      measured && `${grouped(line.quantity ?? "")} ${line.unit ?? "units"} at ${grouped(line.unit_price ?? "")}`,
      line.product_type,
      line.resource_id,
      `line ${line.line_id}`,
    ]
      .filter(Boolean)
      .join(" · "),
  };
}

function portion(found: Explained, currency: string): Step {
  const title = "The portion";
  if ("topic_name" in found) return { title, text: "The whole line goes to the topics of the cluster." };
  const { policy } = found;
  if (!policy) return { title, text: "The policy is not recorded." };
  const more = <PolicyText hash={policy.hash} product={policy.product_type} source={policy.source} />;
  if (!found.portion) return { title, text: "It cannot be told.", more };
  const { number, share: part, amount: cost } = found.portion;
  const text =
    policy.portions.length === 1
      ? "the whole line"
      : `portion ${number} of ${policy.portions.length} takes ${percent(Number(part), 0)} of the line: ${exact(cost, currency)}`;
  return { title, text, more };
}

function way({ methods }: Explained): Step {
  const title = "The way";
  const applied = methods.find((each) => each.applied);
  if (!applied) return { title, text: "No way was needed, or none is known." };
  const failed = methods.filter((each) => each.position < applied.position);
  return {
    title,
    text: failed.length === 0 ? `the first way applied: ${applied.method}` : `${applied.method} applied`,
    note: failed.map((each) => `not ${each.method}: ${each.why_not}`).join(" · ") || undefined,
  };
}

function share(found: Explained): Step {
  const title = "The share";
  const { evidence } = found;
  if (!evidence) return { title, text: found.evidence_missing ?? found.why_nothing ?? "" };
  const mine = contendersOf(found).find((each) => each.asked);
  const who = nameOfPayer(found);
  if (!mine) return { title, text: `${who} has no share: ${found.why_nothing}` };
  const part = Number(mine.ratio);
  const text =
    mine.value === null || evidence.total === null ? (
      `${who} has one of ${contendersOf(found).some((each) => each.id === null) ? "several" : evidence.contenders_total} equal shares`
    ) : (
      <>
        {who}: <Digits text={grouped(mine.value)} /> of <Digits text={grouped(evidence.total)} />
      </>
    );
  return { title, text, share: part, note: [evidence.measure, percent(part, 4)].filter(Boolean).join(" · ") };
}

function amount(found: Explained, currency: string): Step {
  const { arithmetic } = found;
  const told = arithmetic?.amount ?? found.row?.amount;
  const compared = {
    same: "calculated again with the same result",
    different: "calculated again with another result than is stored",
  };
  return {
    title: "The amount",
    text: told === undefined ? "nothing" : <span className="num">{exact(told, currency)}</span>,
    note: [
      found.recomputed && compared[found.recomputed],
      arithmetic?.extra_unit && "with one unit of 10⁻¹² that rounding left over",
      "row" in found && found.row && "allocation_method" in found.row && method(found.row.allocation_method),
    ]
      .filter(Boolean)
      .join(" · "),
  };
}

/** One of those who share an amount; without an id, all those together that the reader may not see. */
export interface Contender {
  id: string | null;
  name: string;
  value: string | null;
  ratio: string;
  asked: boolean;
}

const OTHERS = "Others";

/** Those who share the amount, as far as they are listed. */
export function contendersOf(found: Explained): Contender[] {
  if (!found.evidence) return [];
  if ("topic_name" in found)
    return found.evidence.contenders.map(({ topic_name: id, value, ratio }) => ({
      ...{ id, value, ratio, name: id ?? OTHERS },
      asked: id === found.topic_name,
    }));
  return found.evidence.contenders.map(({ identity_id: id, name, value, ratio }) => ({
    ...{ id, value, ratio, name: id === null ? OTHERS : label("identity_id", id, name).name },
    asked: id === found.identity_id,
  }));
}
