/** A service over a generated organisation: it answers every question by its query, as the real one does. */
import type {
  Breakdown,
  Costs,
  DayFacts,
  Finding,
  Found,
  Health,
  HealthProblem,
  Me,
  Reconciled,
  RunProgress,
  SavedView,
  Topics,
} from "../../src/api/shapes";
import { add, length } from "../../src/calendar/days.ts";
import { ratio, read, sum, type Units, write } from "../../src/money/money.ts";
import type { CategoryDocument } from "../../src/pages/categories/document";
import {
  type Asking,
  answerOf,
  CENTRES,
  centreOf,
  changedCategory,
  changedTags,
  grouped,
  nameOf,
  page,
  total,
  valueIn,
} from "./fakepages.ts";

export interface Row {
  date: string;
  identity_id: string;
  resource_id: string;
  environment_id: string;
  product_type: string;
  product_category: string;
  /** Of Kafka alone. */
  topic_name: string | null;
  "tag:team": string | null;
  amount: Units;
}

export interface Organisation {
  /** The last calculated day; null where there is none yet. */
  last: string | null;
  rows: readonly Row[];
  names: Readonly<Record<string, string>>;
  /** Days that are billed and not calculated, and what is billed; those that are refused wait for their source. */
  pending: Readonly<Record<string, string>>;
  refused: readonly string[];
  /** For how many days each source has answered, of a first run that is not over, and its refusal. */
  sources: Partial<Record<Health["sources"][number]["source"], { days: number; error?: string }>>;
  /** What the last run failed at. */
  errors: readonly string[];
  findings: readonly Finding[];
  views: readonly SavedView[];
  /** Its cost category `cost_center`; null if it has none. */
  categories: CategoryDocument | null;
  /** What the category was in its third version and the later ones, before it was changed. */
  past: readonly CategoryDocument[];
  /** Whether a run is on, and why there are none. */
  isRunning: boolean;
  progress: RunProgress | null;
  /** When the last run ended. */
  lastRun: string;
  suspended: string | null;
  /** Who asks. */
  me: Me;
}

/** Somebody on his own machine, where the service tells nobody apart. */
const ANYBODY: Me = {
  user: "api",
  kind: "anonymous",
  groups: [],
  tenants: [{ tenant_name: "acme", rights: ["read", "export", "tag", "run", "close", "admin"], scope: null, role: "" }],
};

const LAST = "2026-11-16";
const TEAMS = ["payments", "orders", "search", null];
const PRODUCTS = ["KAFKA_NUM_CKUS", "KAFKA_STORAGE", "FLINK_NUM_CFUS"];
const RESOURCES = ["prod-dedicated-0", "prod-enterprise-1", "pool-search-2"];
/** What `by=usual` stands for. */
const USUAL = ["tag:team", "identity_id", "environment_id", "product_type", "resource_id"];

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
      product_category: who % 3 === 2 ? "FLINK" : "KAFKA",
      topic_name: who % 3 === 2 ? null : `topic.${who}.v1`,
      "tag:team": TEAMS[who % 4] ?? null,
      amount: read(`${100 + 17 * who + ((day * 7) % 13)}.${10 + who}0001`),
    };
    const other = change(row, day, who);
    return other === null ? row : { ...row, amount: read(other) };
  });
  const named = rows.map(({ identity_id: id }) => [
    id,
    id === "UNALLOCATED" ? "Unallocated" : `Service ${id.slice(3)}`,
  ]);
  const names = { ...Object.fromEntries(named), "env-1": "prod" };
  for (const [n, name] of RESOURCES.entries()) names[`lkc-${n}`] = name;
  const nothing = {
    ...{ pending: {}, refused: [], sources: {}, errors: [], findings: [], views: [], categories: null },
    ...{ past: [], progress: null, lastRun: "2026-11-20T05:00:00Z", suspended: null },
  };
  return { last: LAST, rows, names, ...nothing, isRunning: false, me: ANYBODY } satisfies Organisation as Organisation;
}

/** An organisation that has something on every page. */
export function acme(): Organisation {
  const created = { created_by: "alice", created_at: "2026-11-20T10:00:00Z" };
  const query = "period=last-month&tag:team=payments";
  return {
    ...organisation(9),
    categories: CENTRES,
    findings: ["idle_identity", "topic_never_read", "idle_resource"].map((kind, n) => finding(`sa-${n}`, kind)),
    views: [{ id: "1", name: "Payments last month", page: "costs", query, ...created }],
  };
}

/** Something that costs and is not used. */
export function finding(id: string, kind: string, tags: Readonly<Record<string, string>> = {}): Finding {
  return {
    ...{ id, kind, tags, subject: { type: "identity", id, name: id, cluster_id: null }, owner: null, since: LAST },
    ...{ last_active: null, monthly_cost: "12.00", avoidable: "full", avoidable_cost: "12.00", why: "Idle." },
    ...{ action: "Ask.", confidence: "high", snooze: null },
    evidence: { measured_days: 14, unmeasured_days: 0, last_measured: LAST, bytes_in: "5.00", bytes_out: "0.00" },
  } as Finding;
}

const lineOf = (row: Row) => `${row.date}.${row.resource_id}.${row.product_type}`;
/** What was measured of a row: bytes, so that numbers are long. */
const measured = (row: Row) => write(row.amount * 10n ** 11n + read("0.123456789"));

/** The row of a list, with the link to why it is so. */
function listed(of: Organisation, row: Row) {
  const explain = new URLSearchParams({ date: row.date, line_id: lineOf(row), identity_id: row.identity_id });
  return {
    ...{ identity_id: row.identity_id, identity_name: of.names[row.identity_id], tags: {}, dimension_id: 1 },
    ...{ resource_id: row.resource_id, resource_name: of.names[row.resource_id], product_type: row.product_type },
    ...{ timestamp: `${row.date}T00:00:00Z`, cost_type: "usage", amount: write(row.amount) },
    product_category: row.product_category,
    ...{ allocation_method: "usage_ratio", allocation_detail: "USAGE_RATIO_ALLOCATION" },
    metadata: { line_id: lineOf(row), portion: 1, explain: `chargebacks/explain?${explain}` },
  };
}

/** Why an identity has its part of a line. */
function explained(of: Organisation, query: URLSearchParams) {
  const [line_id = "", identity_id = ""] = [query.get("line_id"), query.get("identity_id")].map((each) => each ?? "");
  const sharing = of.rows.filter((each) => lineOf(each) === line_id);
  const row = sharing.find((each) => each.identity_id === identity_id);
  const [first] = sharing;
  if (!first) return undefined;
  const { date, resource_id, product_type } = first;
  const whole = sum(sharing.map((each) => each.amount));
  const contenders = sharing.map((each) => ({
    ...{ identity_id: each.identity_id, name: of.names[each.identity_id], value: measured(each) },
    ratio: String(ratio(each.amount, whole)),
  }));
  const policy = { product_type, matched: product_type, hash: "eba4a8afe7b6", source: "shipped" };
  const method = {
    position: 1,
    method: "usage(bytes_in)",
    applied: true,
    why_not: null,
    candidates: contenders.length,
  };
  const why_nothing = row ? null : "It used nothing of it.";
  const line = { date, line_id, resource_id, resource_name: null, product_type, product_category: "KAFKA" };
  return {
    ...{ date, line_id, identity_id, identity_name: of.names[identity_id] ?? null, why_nothing, revision: 1 },
    sentence: `${of.names[identity_id] ?? identity_id} has its part of ${write(whole)} USD.`,
    row: row ? { ...listed(of, row), line_id, portion: 1 } : null,
    line: { ...line, currency: "USD", unit: null, quantity: null, unit_price: null, total_cost: write(whole) },
    policy: { ...policy, portions: [{ number: 1, share: "1.00", methods: [method.method] }] },
    ...{ portion: { number: 1, share: "1.00", amount: write(whole) }, methods: [method], arithmetic: null },
    evidence: {
      ...{ measure: "bytes_in", contenders, contenders_total: contenders.length, members: contenders.length },
      ...{ total: write(sum(contenders.map((each) => read(each.value)))), metrics_available: true },
    },
    ...{ evidence_missing: null, recomputed: "same", links: {} },
    siblings: { rows: sharing.length, sum: write(whole), equals_line: true },
    revisions: [
      { revision: 1, calculated_at: `${date}T06:12:00Z`, cause: "first", amount: row ? write(row.amount) : null },
    ],
  };
}

/** What is wrong: the days that wait, those for a source apart, and what the last run failed at. */
function healthOf({ last, pending, refused, sources: answered, errors }: Organisation): Health {
  const problem = (
    kind: HealthProblem["kind"],
    severity: HealthProblem["severity"],
    ended_by: HealthProblem["ended_by"],
    days: readonly string[] = [],
  ): HealthProblem => ({
    ...{ kind, severity, ended_by, causes: [...errors], remedy: ended_by === "run" ? "Run it again." : CORRECT },
    ...{ start_date: days[0] ?? null, end_date: days.at(-1) ?? null, days: days.length },
  });
  const waiting = Object.groupBy(Object.keys(pending).sort(), (each) => (refused.includes(each) ? "source" : "run"));
  const problems: HealthProblem[] = [
    ...(waiting.run ? [problem("days_waiting", "bad", "run", waiting.run)] : []),
    ...(waiting.source ? [problem("days_waiting", "bad", "source", waiting.source)] : []),
    ...(errors.length ? [problem("run_failed", "warning", "run")] : []),
  ];
  const all = last ? 60 : 0;
  const sources = (["bill", "inventory", "metrics"] as const).map((source) => {
    const { days, error = null } = answered[source] ?? { days: all };
    const is_refused = error !== null;
    return { source, days, last_at: null, error, is_refused, remedy: is_refused ? CORRECT : null };
  });
  const state = problems[0]?.severity ?? "ok";
  return { state, problems, sources, days_calculated: all, lookback_days: all || 35 };
}

const CORRECT = "Correct its key.";

/** What the service answers at a path below a tenant; undefined where it has nothing. `change` is what is to be. */
export function answer(of: Organisation, path: string, query: URLSearchParams, change?: Asking["body"]): unknown {
  const end = query.get("end_date") ?? of.last ?? LAST;
  const start = query.get("start_date") ?? add(end, 1 - (Number.parseInt(query.get("period") ?? "", 10) || 30));
  const dates = Array.from({ length: Math.max(0, length(start, end)) }, (_, n) => add(start, n));
  const known = (row: Row, key: string) => valueIn(of, row, key) ?? (key.startsWith("tag:") ? "UNTAGGED" : "");
  const scope = Object.entries(of.me.tenants[0]?.scope ?? {});
  const seen = of.rows.filter((row) => scope.every(([by, values]) => values.includes(known(row, by))));
  const wanted = seen.filter((row) =>
    [...new Set(query.keys())].every((key) => {
      const isLeftOut = key.startsWith("not.");
      const column = isLeftOut ? key.slice(4) : key;
      const isKnown = column in row || column.startsWith("category:");
      return !isKnown || query.getAll(key).includes(known(row, column)) !== isLeftOut;
    }),
  );
  const rows = wanted.filter((row) => row.date >= start && row.date <= end);
  const before = wanted.filter((row) => row.date < start && row.date >= add(start, -dates.length));
  const days = dates.map((date): Reconciled => {
    const charged = total(of.rows.filter((row) => row.date === date));
    const waits = of.pending[date];
    const state: Reconciled["state"] = waits ? "pending" : of.last && date <= of.last ? "equal" : "none";
    return {
      ...{ date, state, billed: waits ?? charged, charged: waits ? "0.00" : charged, difference: "0.00", topics: true },
      ...{ error: waits ? (of.errors[0] ?? null) : null, fingerprint: null, gathered_at: null, unallocated: "0.00" },
      ...{ pending: waits ?? "0.00", by_topic: null, lines: 1, rows: 1, revision: 1, policies: "current" },
      calculated_at: null,
    };
  });
  const usual = [...(of.categories ? ["category:cost_center"] : []), ...USUAL];
  const asked = query.getAll("by").flatMap((by) => (by === "usual" ? usual : by));
  const dimensions = [...new Set(asked)].slice(0, 6);
  const series = query.get("series") ?? dimensions[0];
  const breakdown = (by: string): Breakdown => {
    const summed = (all: readonly Row[], earlier: readonly Row[]) => ({
      ...{ amount: total(all), previous: total(earlier), rows: all.length, usage: "0.00" },
      amounts: by === series ? dates.map((date) => total(all.filter((row) => row.date === date))) : [],
    });
    const items = grouped(rows, (row) => valueIn(of, row, by)).map(([value, all]) => ({
      ...{ value, name: centreOf(of, by, value) ?? nameOf(of, value), kind: null, deleted_at: null },
      ...summed(
        all,
        before.filter((row) => valueIn(of, row, by) === value),
      ),
    }));
    const shown = items.slice(0, Number(query.get("top") ?? 7));
    const isOther = (row: Row) => !shown.some(({ value }) => value === valueIn(of, row, by));
    const count = items.length - shown.length;
    const other = count ? { count, ...summed(rows.filter(isOther), before.filter(isOther)) } : null;
    return { by, items: shown, other, movers: shown } as Breakdown;
  };
  const asking = { of, query, start, end, rows, before, body: change ?? {} };
  const compared = {
    ...{ start_date: add(start, -dates.length), end_date: add(start, -1), days_with_costs: dates.length },
  };
  const costs = (): Costs => {
    const amount = total(rows);
    const unallocated = total(rows.filter((row) => row.identity_id === "UNALLOCATED"));
    const nobodys = {
      reason: "NO_OWNER_LOCATED",
      unallocated: true,
      amount: unallocated,
      rows: dates.length,
      resources: 1,
    };
    const issues = read(unallocated) ? [nobodys] : [];
    const topics = answerOf("/topics", asking) as Topics;
    const sums = { amount, usage: amount, shared: "0.00", rows: rows.length, unallocated };
    return {
      ...{ start_date: start, end_date: end, timezone: "UTC", currency: "USD", conversion: null, revision: "r1" },
      ...{ days_with_costs: dates.length, times: dates, previous_amounts: [], issues, forecast: null },
      topics: { ...topics, items: topics.items.slice(0, 5), other: null, ignored_filters: [] },
      compared_with: query.get("compare") === "none" ? null : compared,
      amounts: dates.map((date) => total(rows.filter((row) => row.date === date))),
      total: { ...sums, previous: total(before), previous_unallocated: "0.00" },
      breakdowns: dimensions.map(breakdown),
      days: scope.length ? null : (days as DayFacts[]),
    } as Costs;
  };
  const run = { dates_gathered: 1, dates_calculated: 0, chargeback_rows_written: 0, errors: of.errors };
  const features = { can_tag: true, can_run: true, topics: true };
  const tag_keys = of.last ? [{ key: "team", coverage: "0.8", values: 3 }] : [];
  const search = query.get("search") ?? query.get("q") ?? "";
  /** What the inventory knows of the ids in a column. */
  const entities = (column: "identity_id" | "resource_id", kind: string, type: string) =>
    [...new Set(of.rows.map((row) => row[column]))]
      .filter((id) => id.includes(search))
      .map((id) => ({
        ...{ [column]: id, display_name: of.names[id] ?? null, [`${kind}_type`]: type, metadata: {}, deleted_at: null },
        ...{ created_at: "2026-09-23T00:00:00Z", last_seen_at: "2026-11-16T08:00:00Z", status: "active" },
      }));
  /** Identities, and cost centres of which each has one team. */
  const found = (): Found[] => {
    const kinds = [
      ["identity", "identity_id", "service_account", (id: string) => [id, of.names[id] ?? null]],
      ["resource", "resource_id", "kafka_cluster", (id: string) => [id, of.names[id] ?? null]],
      ["category", "tag:team", "cost_center", (team: string) => [`cc-${team}`, `Centre of ${team}`]],
    ] as const;
    const all = kinds.flatMap(([kind, by, type, named]) =>
      [...Map.groupBy(rows, (row) => row[by])].flatMap(([value, sharing]) => {
        const [id, name] = value === null ? [] : named(value);
        return id ? [{ kind, id, name: name ?? null, type, parent_id: null, amount: total(sharing) }] : [];
      }),
    );
    return all.filter(({ id, name }) => `${id} ${name}`.toLowerCase().includes(search.toLowerCase()));
  };
  const answers: Record<string, () => unknown> = {
    "": () => ({
      ...{ tenant_name: "acme", currency: "USD", currencies: [], last_date: of.last, tag_keys, features, run: null },
      first_date: of.last && add(of.last, -59),
      ...{ permanent_failure: of.suspended, category_keys: of.categories ? ["cost_center"] : [] },
    }),
    "/pipeline/status": () => ({
      ...{
        tenant_name: "acme",
        is_running: of.isRunning,
        progress: of.progress,
        permanent_failure: of.suspended,
        last_run: of.lastRun,
      },
      last_result: { ...run, completed_at: of.lastRun },
    }),
    "/runs": () => ({
      items: [
        { ...run, run_id: "1", status: `completed${of.errors.length ? "_with_errors" : ""}`, completed_at: of.lastRun },
      ],
    }),
    "/health": () => healthOf(of),
    "/inventory/summary": () => ({
      resource_counts: { kafka_cluster: { total: new Set(of.rows.map((row) => row.resource_id)).size } },
      identity_counts: {
        service_account: { total: new Set(of.rows.map((row) => row.identity_id)).size },
        system: { total: 1 },
      },
    }),
    "/views": () => ({ items: of.views }),
    "/costs": costs,
    "/chargebacks": () =>
      page(
        rows.map((each) => listed(of, each)),
        query,
      ),
    "/chargebacks/explain": () => explained(of, query),
    "/reconciliation": () => ({ start_date: start, end_date: end, currency: "USD", group_by: "day", days }),
    "/findings": () => ({ ...page(of.findings), currency: "USD", snoozed: 0 }),
    "/identities": () => page(entities("identity_id", "identity", "service_account"), query),
    "/resources": () => page(entities("resource_id", "resource", "kafka_cluster"), query),
    "/search": () => ({ items: found(), currency: "USD", start_date: start, end_date: end }),
  };
  if (change && path.startsWith("/cost-categories/")) return changedCategory(asking);
  if (change?.items) return changedTags(of, path, change.items);
  return answers[path]?.() ?? answerOf(path, asking);
}

/** What the service answers above its tenants: who asks, and which tenants there are. */
export const above = (of: Organisation, path: string): unknown =>
  ({ me: of.me, tenants: [{ tenant_name: "acme", last_calculated_date: of.last }] })[path];
