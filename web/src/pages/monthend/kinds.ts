/** What people can choose of a month's entries, each with what it is called. */
import type { Adjustment } from "../../api/shapes";
import { say } from "../../words/say";

export const ADJUSTMENTS = [
  ["reallocation", say("reallocation")],
  ["fee", say("fee")],
  ["credit", say("credit [an adjustment]")],
  ["rounding", say("rounding")],
] as const satisfies readonly (readonly [Adjustment["kind"], string])[];

export const INVOICES = [
  ["invoice", say("invoice")],
  ["credit_memo", say("credit memo")],
  ["marketplace", say("marketplace")],
  ["support", say("support")],
] as const;

export const STATUSES = [
  ["issued", say("issued")],
  ["open", say("open [an invoice]")],
  ["voided", say("voided")],
] as const;

/** What one of them is called. */
export function called(all: readonly (readonly [value: string, name: string])[], value: string): string {
  return all.find(([each]) => each === value)?.[1] ?? value.replace("_", " ");
}
