import type { ReactNode } from "preact/compat";
import type { Explained } from "../../api/shapes";
import { full } from "../../format/days";
import { grouped } from "../../format/formats";
import { exact, percent } from "../../format/money";
import { code, label, method, nameOfPayer } from "../../format/names";
import { Digits } from "../../ui/digits";
import { reworded } from "../../words/reworded";
import { say } from "../../words/say";
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
  const title = say("The bill");
  if (!line) return { title, text: say("The bill of this day is lost.") };
  const what = label("resource_id", line.resource_id, line.resource_name).name;
  const measured = line.quantity && line.unit_price;
  return {
    title,
    text: say("{product} of {what} on {day}: {amount}", {
      product: code(line.product_type),
      what: <b>{what}</b>,
      day: full(date),
      amount: <span className="num">{exact(line.total_cost, line.currency)}</span>,
    }),
    note: [
      measured &&
        say("{quantity} {unit} at {price}", {
          quantity: grouped(line.quantity ?? ""),
          unit: line.unit ?? say("units [of a quantity]"),
          price: grouped(line.unit_price ?? ""),
        }),
      line.product_type,
      line.resource_id,
      say("line {id}", { id: line.line_id }),
    ]
      .filter(Boolean)
      .join(" · "),
  };
}

function portion(found: Explained, currency: string): Step {
  const title = say("The portion");
  if ("topic_name" in found) return { title, text: say("The whole line goes to the topics of the cluster.") };
  const { policy } = found;
  if (!policy) return { title, text: say("The policy is not recorded.") };
  const more = <PolicyText hash={policy.hash} product={policy.product_type} source={policy.source} />;
  if (!found.portion) return { title, text: say("It cannot be told."), more };
  const { number, share: part, amount: cost } = found.portion;
  const text =
    policy.portions.length === 1
      ? say("the whole line")
      : say("portion {number} of {all} takes {percent} of the line: {amount}", {
          number,
          all: policy.portions.length,
          percent: percent(Number(part), 0),
          amount: exact(cost, currency),
        });
  return { title, text, more };
}

function way({ methods }: Explained): Step {
  const title = say("The way");
  const applied = methods.find((each) => each.applied);
  if (!applied) return { title, text: say("No way was needed, or none is known.") };
  const failed = methods.filter((each) => each.position < applied.position);
  return {
    title,
    text: failed.length === 0 ? say("the first way applied: {method}", applied) : say("{method} applied", applied),
    note:
      failed
        .map((each) => say("not {method}: {why}", { method: each.method, why: reworded(each.why_not ?? "") }))
        .join(" · ") || undefined,
  };
}

function share(found: Explained): Step {
  const title = say("The share");
  const { evidence } = found;
  if (!evidence) return { title, text: reworded(found.evidence_missing ?? found.why_nothing ?? "") };
  const mine = contendersOf(found).find((each) => each.asked);
  const who = nameOfPayer(found);
  if (!mine) return { title, text: say("{who} has no share: {why}", { who, why: reworded(found.why_nothing ?? "") }) };
  const part = Number(mine.ratio);
  const text =
    mine.value !== null && evidence.total !== null
      ? say("{who}: {part} of {whole}", {
          who,
          part: <Digits text={grouped(mine.value)} />,
          whole: <Digits text={grouped(evidence.total)} />,
        })
      : contendersOf(found).some((each) => each.id === null)
        ? say("{who} has one of several equal shares", { who })
        : say("{who} has one of {n} equal shares", { who, n: evidence.contenders_total });
  return { title, text, share: part, note: [evidence.measure, percent(part, 4)].filter(Boolean).join(" · ") };
}

function amount(found: Explained, currency: string): Step {
  const { arithmetic } = found;
  const told = arithmetic?.amount ?? found.row?.amount;
  const compared = {
    same: say("calculated again with the same result"),
    different: say("calculated again with another result than is stored"),
  };
  return {
    title: say("The amount"),
    text: told === undefined ? say("nothing [an amount]") : <span className="num">{exact(told, currency)}</span>,
    note: [
      found.recomputed && compared[found.recomputed],
      arithmetic?.extra_unit && say("with one unit of 10⁻¹² that rounding left over"),
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

const OTHERS = say("Others");

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
