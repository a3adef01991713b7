import { describe, expect, test } from "vitest";
import type { Breakdown, Costs, DayState, Finding, Item, Tenant } from "../../api/shapes";
import { read, sum } from "../../money/money";
import { readView } from "../../url/view";
import { matching } from "../findings";
import { verdictOf } from "./days";
import { comparison, leadingTag, ranked, remainder } from "./facts";

const item = (value: string | null, amount: string, previous = "1"): Item => ({
  value,
  name: null,
  kind: null,
  deleted_at: null,
  amount,
  previous,
  usage: "0",
  rows: 1,
  amounts: [],
});

const breakdown: Breakdown = {
  by: "product_type",
  items: [item("A", "10"), item("B", "5"), item("C", "3.000000000001"), item(null, "1")],
  other: { count: 3, amount: "0.5", previous: "2", amounts: [] },
  movers: [],
};

function costs(days: number, before: number | null): Costs {
  const compared_with =
    before === null ? null : { start_date: "2026-10-01", end_date: "2026-10-30", days_with_costs: before };
  return { days_with_costs: days, compared_with, start_date: "2026-10-31", end_date: "2026-11-29" } as Costs;
}

describe("comparison", () => {
  test("only periods with equally many days with costs are compared", () => {
    expect(comparison(costs(30, 30))).toEqual({ comparable: true, why: null });
    expect(comparison(costs(30, 25))).toEqual({
      comparable: false,
      why: "the period before has only 25 of 30 days: not comparable",
    });
    expect(comparison(costs(12, 30)).why).toBe("this period has only 12 of 30 days: not comparable");
    expect(comparison(costs(30, 0)).comparable).toBe(false);
    expect(comparison(costs(30, null))).toEqual({ comparable: false, why: null });
  });
});

describe("ranked", () => {
  const listing = { view: readView(""), to: () => "x", colour: () => "k1" };

  test("what is shown and what remains are the whole, to the last digit", () => {
    const shown = ranked(breakdown, 2, listing);
    expect(shown.map((each) => each.name)).toEqual(["A", "B", "5 others"]);
    expect(sum(shown.map((each) => each.amount))).toBe(read("19.500000000001"));
    expect(remainder(breakdown, 2)?.previous).toBe(read("4"));
  });

  test("without others there is no rest", () => {
    expect(remainder({ ...breakdown, other: null }, 4)).toBeNull();
  });
});

test("a tag leads where most of the cost has it", () => {
  const tenant = (coverage: string) => ({ tenant_name: "acme", tag_keys: [{ key: "team", coverage }] }) as Tenant;
  expect(leadingTag(tenant("0.5"))).toBe("tag:team");
  expect(leadingTag(tenant("0.49"))).toBeNull();
});

test("days are as good as the worst of them", () => {
  const verdict = (...states: DayState[]) => verdictOf(states.map((state) => ({ state })));
  expect(verdict("equal", "none")).toEqual({ text: "Equal to the last digit", tone: "good" });
  expect(verdict("equal", "pending")).toEqual({ text: "1 day not calculated yet", tone: "warn" });
  expect(verdict("equal", "pending", "differs", "differs")).toEqual({ text: "2 days differ", tone: "bad" });
  expect(verdict("none")).toEqual({ text: "Nothing calculated", tone: "warn" });
});

describe("findings", () => {
  const finding = (kind: Finding["kind"], id: string, team: string | null, cluster_id: string | null = null) =>
    ({ kind, subject: { id, cluster_id }, tags: team ? { team } : {} }) as unknown as Finding;
  const all = [
    finding("topic_never_read", "lkc-1:topic:a", "payments", "lkc-1"),
    finding("idle_resource", "lkc-2", null),
    finding("idle_identity", "sa-1", "search"),
  ];
  const found = (query: string) => matching(all, readView(query).filters).map((each) => each.subject.id);

  test("are those of the filters of the address", () => {
    expect(found("")).toHaveLength(3);
    expect(found("?tag:team=payments")).toEqual(["lkc-1:topic:a"]);
    expect(found("?tag:team=payments&tag:team=search")).toEqual(["lkc-1:topic:a", "sa-1"]);
    expect(found("?not.tag:team=UNTAGGED")).toEqual(["lkc-1:topic:a", "sa-1"]);
    expect(found("?cluster_id=lkc-1")).toEqual(["lkc-1:topic:a"]);
    expect(found("?resource_id=lkc-2")).toEqual(["lkc-2"]);
    expect(found("?identity_id=sa-1")).toEqual(["sa-1"]);
  });

  test("are not narrowed by what they know nothing of, which the page says", () => {
    expect(found("?product_type=KAFKA_BASE")).toHaveLength(3);
  });
});
