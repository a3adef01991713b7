import { expect, test } from "vitest";
import type { Journal, StatementRow, StatementTie } from "../../api/shapes";
import { besideTheBill, tieState } from "../bill/tieout";
import { filtersOf } from "./address";
import { ledgerIds } from "./journal";
import { saidOf, verdictsOf } from "./replies";

const CATEGORY = "category:cost_center";
const written = (by: string, value: string, unassigned: string | null) =>
  filtersOf(by, value, unassigned)?.map((each) => `${each.not ? "not." : ""}${each.key}=${each.value}`);

test("the rows of a statement are those of its value", () => {
  expect(written("identity_id", "UNALLOCATED", null)).toEqual(["identity_id=UNALLOCATED"]);
  expect(written("tag:team", "payments", "UNTAGGED")).toEqual(["tag:team=payments"]);
  expect(written(CATEGORY, "payments", null)).toEqual([`${CATEGORY}=payments`]);
});

test("what is assigned to no value is in two statements, which share no row", () => {
  expect(written("tag:team", "UNTAGGED", "UNTAGGED")).toEqual(["tag:team=UNTAGGED", "not.identity_id=UNALLOCATED"]);
  expect(written("tag:team", "UNALLOCATED", "UNTAGGED")).toEqual(["tag:team=UNTAGGED", "identity_id=UNALLOCATED"]);
  expect(written(CATEGORY, "shared", "shared")).toEqual([`${CATEGORY}=shared`, "not.identity_id=UNALLOCATED"]);
  expect(written(CATEGORY, "UNALLOCATED", null)).toBeUndefined();
});

type Reply = NonNullable<StatementRow["last_reply"]>;

const row = (verdict: StatementRow["verdict"], last: Partial<Reply> | null) => ({
  verdict,
  last_reply: last && ({ created_by: "ann", verdict: "disputed", ...last } as Reply),
});

test("a list says what was replied to what a statement says now", () => {
  expect(saidOf(row("disputed", { is_current: true }), true)).toBe("Disputed by ann");
  expect(saidOf(row(null, { is_current: false }), true)).toBe("Changed since ann disputed it");
  expect(saidOf(row("acknowledged", { is_current: false }), true)).toBe("Acknowledged");
  expect(saidOf(row(null, null), true)).toBe("No reply");
  expect(saidOf(row(null, null), false)).toBeNull();
});

test("the replies of a month are counted", () => {
  const items = [row("acknowledged", null), row(null, null), row("disputed", null), row(null, { is_current: false })];
  expect(verdictsOf(items)).toBe("1 disputed, 1 acknowledged, 2 open");
  expect(verdictsOf([row("acknowledged", null)])).toBe("1 acknowledged");
});

test("each of finance's own ids is a column of the journal", () => {
  const lines = [{ gl: { cost_center: "1" } }, { gl: {} }, { gl: { account: "2", cost_center: "3" } }];
  expect(ledgerIds(lines as unknown as Journal["lines"])).toEqual(["account", "cost_center"]);
});

test("statements are equal to the bill alone only where nothing else is in them", () => {
  const stated = (amount: string) => ({ amount, rounded: amount });
  const says = (difference: string, more: Partial<StatementTie>) => {
    const tie = { outdated: stated("0"), ...more } as StatementTie;
    return tieState(
      Number(difference) === 0,
      besideTheBill(tie).map(([name]) => name),
    );
  };
  expect(says("0", {})).toEqual(["good", "Equal to the provider’s bill, to the last digit"]);
  expect(says("0", { corrections: stated("0.00"), adjustments: stated("0") })).toEqual(says("0", {}));
  expect(says("0", { corrections: stated("249.73"), adjustments: stated("-1") })).toEqual([
    "good",
    "Equal to the provider’s bill + corrections of earlier months + adjustments, to the last digit",
  ]);
  expect(says("0.01", { outdated: stated("3") })).toEqual([
    "bad",
    "Not equal to the provider’s bill + days that are calculated again",
  ]);
});
