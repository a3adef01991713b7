/** A service over a generated organisation: it answers every question by its query, as the real one does. */
import type { Breakdown, Costs, DayFacts, Finding, Reconciled } from "../../src/api/shapes";
import { add, length } from "../../src/format/days.ts";
import { larger, read, sum, type Units, write } from "../../src/money/money.ts";
import { ANYBODY } from "./world.ts";

export interface Row {
  date: string;
  identity_id: string;
  resource_id: string;
  environment_id: string;
  product_type: string;
  "tag:team": string | null;
  amount: Units;
}

export interface Organisation {
  /** The last calculated day; null where there is none yet. */
  last: string | null;
  rows: readonly Row[];
  names: Readonly<Record<string, string>>;
  /** Days that are billed and not calculated, and what is billed. */
  pending: Readonly<Record<string, string>>;
  /** What the last run failed at. */
  errors: readonly string[];
  findings: readonly Partial<Finding>[];
}

export const LAST = "2026-11-16";
const TEAMS = ["payments", "orders", "search", null];
const PRODUCTS = ["KAFKA_NUM_CKUS", "KAFKA_STORAGE", "FLINK_NUM_CFUS"];

/** An organisation of some identities, of which each costs something else on each of 60 days; `change` makes it odd. */
export function organisation(
  identities = 5,
  change: (row: Row, day: number, who: number) => string | null = () => null,
) {
  const rows = Array.from({ length: 60 * identities }, (_, n): Row => {
    const [day, who] = [n % 60, Math.floor(n / 60)];
    const row = {
      date: add(LAST, day - 59),
      identity_id: who === 4 ? "UNALLOCATED" : `sa-${who}`,
      resource_id: `lkc-${who % 3}`,
      environment_id: "env-1",
      product_type: PRODUCTS[who % 3] ?? "",
      "tag:team": TEAMS[who % 4] ?? null,
      amount: read(`${100 + 17 * who + ((day * 7) % 13)}.${10 + who}0001`),
    };
    const other = change(row, day, who);
    return other === null ? row : { ...row, amount: read(other) };
  });
  const names = Object.fromEntries(rows.map(({ identity_id: id }) => [id, `Service ${id.slice(3)}`]));
  return { last: LAST, rows, names, pending: {}, errors: [], findings: [] } as Organisation;
}

const total = (rows: readonly Row[]) => write(sum(rows.map((each) => each.amount)));

/** What the service answers at a path below a tenant; undefined where it has nothing. */
export function answer(of: Organisation, path: string, query: URLSearchParams): unknown {
  const end = query.get("end_date") ?? of.last ?? LAST;
  const start = query.get("start_date") ?? add(end, 1 - Number.parseInt(query.get("period") ?? "30", 10));
  const dates = Array.from({ length: Math.max(0, length(start, end)) }, (_, n) => add(start, n));
  const known = (row: Row, key: string) => row[key as keyof Row] ?? (key.startsWith("tag:") ? "UNTAGGED" : "");
  const wanted = of.rows.filter((row) =>
    [...new Set(query.keys())].every((key) => {
      const isLeftOut = key.startsWith("not.");
      const column = isLeftOut ? key.slice(4) : key;
      return !(column in row) || query.getAll(key).includes(String(known(row, column))) !== isLeftOut;
    }),
  );
  const rows = wanted.filter((row) => row.date >= start && row.date <= end);
  const before = wanted.filter((row) => row.date < start && row.date >= add(start, -dates.length));
  const days = dates.map((date): Reconciled => {
    const charged = total(of.rows.filter((row) => row.date === date));
    const waits = of.pending[date];
    const state: Reconciled["state"] = waits ? "pending" : of.last && date <= of.last ? "equal" : "none";
    const facts = { date, state, billed: waits ?? charged, charged: waits ? "0.00" : charged, difference: "0.00" };
    const error = waits ? (of.errors[0] ?? null) : null;
    const more = {
      topics: true,
      error,
      fingerprint: null,
      gathered_at: null,
      unallocated: "0.00",
      pending: waits ?? "0.00",
    };
    return {
      ...facts,
      ...more,
      by_topic: null,
      lines: 1,
      rows: 1,
      revision: 1,
      policies: "current",
      calculated_at: null,
    };
  });
  const breakdown = (by: string): Breakdown => {
    const groups = [...Map.groupBy(rows, (row) => (row[by as keyof Row] ?? null) as string | null)];
    const items = groups.map(([value, all]) => ({
      ...{
        value,
        name: value === null ? null : (of.names[value] ?? null),
        kind: null,
        deleted_at: null,
        usage: "0.00",
      },
      ...{ amount: total(all), rows: all.length },
      previous: total(before.filter((row) => (row[by as keyof Row] ?? null) === value)),
      amounts: query.get("series") === by ? dates.map((date) => total(all.filter((row) => row.date === date))) : [],
    }));
    items.sort((a, b) => larger(read(a.amount), read(b.amount)));
    return { by, items, other: null, movers: items } as Breakdown;
  };
  const costs = (): Costs => {
    const amount = total(rows);
    const unallocated = total(rows.filter((row) => row.identity_id === "UNALLOCATED"));
    const sums = { amount, usage: amount, shared: "0.00", rows: rows.length, unallocated };
    return {
      ...{ start_date: start, end_date: end, timezone: "UTC", currency: "USD", conversion: null, revision: "r1" },
      ...{
        days_with_costs: dates.length,
        times: dates,
        previous_amounts: [],
        issues: [],
        forecast: null,
        topics: null,
      },
      compared_with: { start_date: add(start, -dates.length), end_date: add(start, -1), days_with_costs: dates.length },
      amounts: dates.map((date) => total(rows.filter((row) => row.date === date))),
      total: { ...sums, previous: total(before), previous_unallocated: "0.00" },
      breakdowns: query.getAll("by").map(breakdown),
      days: days as DayFacts[],
    } as Costs;
  };
  const page = <T>(items: readonly T[]) => ({ items, total: items.length, page: 1, page_size: 200, pages: 1 });
  const run = { dates_gathered: 1, dates_calculated: 0, chargeback_rows_written: 0, errors: of.errors };
  const completed_at = "2026-11-20T05:00:00Z";
  const features = { can_tag: true, can_run: true, topics: false };
  const tag_keys = of.last ? [{ key: "team", coverage: "0.8", values: 3 }] : [];
  const search = query.get("search") ?? query.get("q") ?? "";
  const entities = Object.entries(of.names).filter(([id]) => id.includes(search));
  const answers: Record<string, () => unknown> = {
    "": () => ({
      tenant_name: "acme",
      currency: "USD",
      currencies: [],
      last_date: of.last,
      tag_keys,
      features,
      run: null,
    }),
    "/pipeline/status": () => ({
      ...{ tenant_name: "acme", is_running: false, permanent_failure: null, last_run: completed_at },
      last_result: { ...run, completed_at },
    }),
    "/runs": () => ({ items: [{ ...run, run_id: "1", status: "completed_with_errors", completed_at }] }),
    "/cost-categories": () => ({ items: [] }),
    "/views": () => ({ items: [] }),
    "/costs": costs,
    "/reconciliation": () => ({ start_date: start, end_date: end, currency: "USD", group_by: "day", days }),
    "/findings": () => ({ ...page(of.findings), currency: "USD", snoozed: 0 }),
    "/identities": () => page(entities.map(([identity_id, display_name]) => ({ identity_id, display_name }))),
    "/resources": () => page([]),
    "/search": () => page(entities.map(([id, name]) => ({ kind: "identity", id, name, type: null, amount: null }))),
    "/chargebacks/aggregate": () => ({
      buckets: [],
      currency: "USD",
      total_amount: total(rows),
      total_rows: rows.length,
    }),
  };
  return answers[path]?.();
}

/** Who asks, and which tenants there are. */
export const ABOVE: Readonly<Record<string, unknown>> = {
  me: ANYBODY,
  tenants: [{ tenant_name: "acme", last_calculated_date: LAST }],
};
