/** What the fake service answers to the pages besides costs, rows and days: all of it is of the rows that were asked for. */
import type { Answered, Path } from "../../src/api/address";
import { add, lastOfMonth } from "../../src/calendar/days.ts";
import { larger, ratio, read, sum, type Units, write } from "../../src/money/money.ts";
import type { CategoryDocument, Rule } from "../../src/pages/categories/document";
import type { Organisation, Row } from "./fake.ts";

/** A question: whose, of which rows, and those of the period before. */
export interface Asking {
  of: Organisation;
  query: URLSearchParams;
  /** What stands for the braces in the path, in turn. */
  at: readonly string[];
  start: string;
  end: string;
  rows: readonly Row[];
  before: readonly Row[];
  /** What a change would write. */
  body: { document?: CategoryDocument; items?: readonly TagWrite[]; dry_run?: boolean };
}

/** The cost category that organisations have who have one: a reorganisation, an old split, a tag, and what is left. */
export const CENTRES = {
  default: "UNASSIGNED",
  values: {
    orders: { name: "Orders", parent: "retail" },
    payments: { name: "Payments", parent: "retail", gl: { account: "54100", cost_center: "CC-4711" } },
    platform: { name: "Platform" },
    retail: { name: "Retail" },
    search: { name: "Search" },
  },
  rules: [
    { id: "reorg-42", match: { identity: ["sa-2"] }, assign: "payments", valid_from: "2026-03-01", reason: "CHG-42" },
    {
      ...{ id: "shared-pool", match: { resource: ["lkc-0"] }, split: { orders: "40", payments: "60" } },
      ...{ valid_from: "2026-06-01", valid_to: "2026-10-01", reason: "Agreed in May" },
    },
    { match: { tag: { key: "team" } }, assign: { from_tag: "team" } },
    {
      id: "support",
      match: { all: [{ product_type: ["SUPPORT*"] }, { identity: ["UNALLOCATED"] }] },
      assign: "platform",
    },
  ],
  share: [{ from: "platform", to: ["orders", "payments", "search"], by: "even" }],
} as const satisfies CategoryDocument;

export const ETAG = '"3-0123456789abcdef"';
const versionOf = ({ past }: Organisation) => 3 + past.length;
/** The ETag of the present version of the cost category. */
export const etagOf = (of: Organisation) => ETAG.replace("3", String(versionOf(of)));

/** The organisation with another document of its cost category. */
export function withCategory(of: Organisation, categories: CategoryDocument): Organisation {
  return { ...of, categories, past: of.categories ? [...of.past, of.categories] : of.past };
}
const NOTHING = "UNASSIGNED";
const CAN = { currency: "USD" } as const;
const HASH = "eba4a8afe7b6";
const FINGERPRINT = "0123456789abcdef".repeat(4);
const WRITTEN = { who: "api", at: "2026-11-12T09:30:00Z", reason: "CHG-42" };

export const total = (rows: readonly Row[]) => write(sum(rows.map((each) => each.amount)));
const minus = (a: string, b: string) => write(read(a) - read(b));
const CENT = read("0.01");
const cents = (amount: Units) => write(((amount + CENT / 2n) / CENT) * CENT);
const stated = (rows: readonly Row[]) => ({ amount: total(rows), rounded: cents(read(total(rows))) });
/** A page of a list, as the question has it. */
export function page<T>(items: readonly T[], query = new URLSearchParams()) {
  const [number, size] = [Number(query.get("page") ?? 1), Number(query.get("page_size") ?? 200)];
  const pages = Math.max(1, Math.ceil(items.length / size));
  return {
    items: items.slice((number - 1) * size, number * size),
    total: items.length,
    page: number,
    page_size: size,
    pages,
  };
}
export const nameOf = (of: Organisation, id: string | null) => (id === null ? null : (of.names[id] ?? null));

type Ids = readonly string[] | { exact: readonly string[] };

/** Whether a row has an id that a rule names. */
function matches(match: Rule["match"], row: Row): boolean {
  const { identity, resource, tag, all } = match as {
    identity?: Ids;
    resource?: Ids;
    tag?: unknown;
    all?: Rule["match"][];
  };
  const named = (ids: Ids, id: string) => ("exact" in ids ? ids.exact : ids).includes(id);
  if (all) return all.every((each) => matches(each, row));
  if (identity) return named(identity, row.identity_id);
  if (resource) return named(resource, row.resource_id);
  return tag !== undefined && row["tag:team"] !== null;
}

/** Which rule decides about a row: those of identities, resources and tags that assign one value are all that this service
 * knows. */
function ruleOf(document: CategoryDocument, row: Row): { index: number; value: string } | null {
  for (const [index, { match, assign }] of (document.rules ?? []).entries()) {
    const value = typeof assign === "string" ? assign : assign && row["tag:team"];
    if (value && matches(match, row)) return { index, value };
  }
  return null;
}

const centreBy = (document: CategoryDocument) => (row: Row) =>
  ruleOf(document, row)?.value ?? document.default ?? NOTHING;

/** The value of a row by a dimension; `category:cost_center@1` is a level up. */
export function valueIn(of: Organisation, row: Row, by: string): string | null {
  if (!by.startsWith("category:")) return (row[by as keyof Row] ?? null) as string | null;
  const value = of.categories ? centreBy(of.categories)(row) : NOTHING;
  const parent = of.categories?.values?.[value]?.parent;
  return by.includes("@") && typeof parent === "string" ? parent : value;
}

/** What the register calls a value of the cost category. */
export const centreOf = (of: Organisation, by: string, value: string | null) =>
  by.startsWith("category:") && value !== null ? (of.categories?.values?.[value]?.name ?? null) : null;

/** Rows by what they have, the most first. */
export function grouped(rows: readonly Row[], by: (row: Row) => string | null): [string | null, Row[]][] {
  return [...Map.groupBy(rows, by)].sort(([, a], [, b]) => larger(read(total(a)), read(total(b))));
}

const UNCHANGED = { ...{ calendar: "0.00", price: "0.00", policy: "0.00", share: "0.00", ownership: "0.00" } };
function changed(before: readonly Row[], after: readonly Row[]) {
  const [was, is] = [total(before), total(after)];
  const delta = minus(is, was);
  const effects = { ...UNCHANGED, quantity: delta, correction: "0.00", new: "0.00", gone: "0.00" };
  const sentence = `${delta} USD: ${delta} because other quantities were billed.`;
  return { before: was, after: is, delta, per_day_before: null, per_day_after: null, effects, sentence };
}

function coverage(of: Organisation, document: CategoryDocument, rows: readonly Row[]) {
  const rules = document.rules ?? [];
  const applied = (index: number) => {
    const { id = `rules[${index}]`, reason = null } = rules[index] ?? ({} as Rule);
    return { index, id, reason };
  };
  const [open, assigned] = [false, true].map((is) => rows.filter((row) => (ruleOf(document, row) !== null) === is));
  const pairs = grouped(rows, (row) => JSON.stringify(ruleOf(document, row)));
  return {
    assigned: total(assigned ?? []),
    unassigned: total(open ?? []),
    percent: ((ratio(read(total(assigned ?? [])), read(total(rows))) ?? 0) * 100).toFixed(2),
    by_rule: pairs.map(([pair, all]) => {
      const found = JSON.parse(pair ?? "null") as ReturnType<typeof ruleOf>;
      return { rule: found && applied(found.index), value: found?.value ?? NOTHING, amount: total(all) };
    }),
    top_unassigned: grouped(open ?? [], (row) => row.identity_id).map(([id, all]) => ({
      ...{ identity_id: id ?? "", display_name: nameOf(of, id), amount: total(all) },
    })),
  };
}

/** What another document would move. */
function dryRun({ of, rows, body }: Asking): Answered<"/cost-categories/{category_key}", "put"> {
  const [was, is] = [of.categories ?? {}, body.document ?? {}].map(centreBy);
  if (!was || !is) throw new Error("two documents");
  const values = [...new Set(rows.flatMap((row) => [was(row), is(row)]))].map((value) => {
    const [before, after] = [was, is].map((by) => total(rows.filter((row) => by(row) === value))) as [string, string];
    return { value, before, after, difference: minus(after, before) };
  });
  const items = grouped(
    rows.filter((row) => was(row) !== is(row)),
    (row) => row.identity_id,
  ).flatMap(([id, all]) =>
    all[0]
      ? [
          {
            identity_id: id ?? "",
            display_name: nameOf(of, id),
            before: was(all[0]),
            after: is(all[0]),
            amount: total(all),
          },
        ]
      : [],
  );
  return {
    ...CAN,
    coverage_before: of.categories ? coverage(of, of.categories, rows) : null,
    coverage_after: coverage(of, body.document ?? {}, rows),
    values: values.filter((each) => read(each.difference) !== 0n),
    moved: items.map(({ before, after, amount }) => ({ before, after, amount })),
    items,
    ...{ never_matching: [], shadowed: [], overlaps: [], unknown_values: [] },
  } as Answered<"/cost-categories/{category_key}", "put">;
}

function graph({ of, query, rows, before, start, end }: Asking): Answered<"/graph/diff"> {
  const focus = (query.get("focus") ?? "").split("/").filter(Boolean);
  const levels = [
    ["organisation", () => ""],
    ["environment", (row: Row) => row.environment_id],
    ["resource", (row: Row) => row.resource_id],
    ["identity", (row: Row) => row.identity_id],
  ] as const;
  const idOf = (row: Row, depth: number) =>
    levels
      .slice(1, depth + 1)
      .map(([kind, by]) => `${kind.charAt(0)}:${by(row)}`)
      .join("/");
  const within = (row: Row) => idOf(row, focus.length) === focus.join("/");
  const [mine, theirs] = [rows, before].map((all) => all.filter(within)) as [Row[], Row[]];
  const nodes = levels.slice(focus.length, focus.length + 3).flatMap(([kind, by], step) => {
    const depth = focus.length + step;
    return grouped(mine, (row) => idOf(row, depth)).flatMap(([id, all]) => {
      const was = theirs.filter((row) => idOf(row, depth) === id);
      const next = levels[depth + 1]?.[1];
      const value = depth && all[0] ? by(all[0]) : null;
      const { before: old, after, delta } = changed(was, all);
      return {
        ...{ id: id ?? "", kind, value, name: nameOf(of, value), type: null, before: old, after, delta },
        parent: step ? (id ?? "").split("/").slice(0, -1).join("/") : null,
        children: next ? new Set(all.map(next)).size : 0,
        ...{ rows: "chargebacks" as const, filters: value === null ? {} : { [`${kind}_id`]: [value] } },
        own: { before: "0.00", after: "0.00", delta: "0.00" },
        ...{ state: "changed" as const, other: null },
      };
    });
  });
  const path = [{ id: "", kind: "organisation" as const, value: null, name: null, type: null }];
  for (const [n, part] of focus.entries()) {
    const [value, kind] = [part.slice(2), levels[n + 1]?.[0] ?? "identity"] as const;
    path.push({ id: focus.slice(0, n + 1).join("/"), kind, value, name: nameOf(of, value), type: null } as never);
  }
  const compared = { compared_start_date: add(start, -1), compared_end_date: add(start, -1) };
  return { start_date: start, end_date: end, ...CAN, ...compared, path, nodes };
}

function flow({ of, query, rows, before, start, end }: Asking): Answered<"/flow"> {
  const columns = query.getAll("by");
  const nodes = columns.flatMap((by, column) =>
    grouped(rows, (row) => valueIn(of, row, by)).map(([value, all]) => ({
      ...{ column, by, value, name: nameOf(of, value), amount: total(all), other: null },
      previous: total(before.filter((row) => valueIn(of, row, by) === value)),
    })),
  );
  const place = (column: number, row: Row) =>
    nodes.findIndex((each) => each.column === column && each.value === valueIn(of, row, columns[column] ?? ""));
  const links = columns.slice(1).flatMap((_, n) =>
    grouped(rows, (row) => `${place(n, row)} ${place(n + 1, row)}`).map(([pair, all]) => {
      const [source = 0, target = 0] = (pair ?? "").split(" ").map(Number);
      return { source, target, amount: total(all), previous: null };
    }),
  );
  return { start_date: start, end_date: end, ...CAN, by: columns, nodes, links };
}

function monthOf({ of, query }: Asking) {
  const period = query.get("period") ?? "2026-11";
  const [start, end] = [`${period}-01`, lastOfMonth(`${period}-01`)];
  const rows = of.rows.filter((row) => row.date >= start && row.date <= end);
  const calculated = new Set(rows.map((row) => row.date)).size;
  const head = {
    ...{ tenant_name: "acme", by: query.get("by") ?? "", period, start_date: start, end_date: end, ...CAN },
    ...{ days: Number(end.slice(8)), calculated_days: calculated, data_through: of.last },
    ...{ issued_at: "2026-11-22T19:38:18Z", status: "PROVISIONAL" as const, basis: "accrual" as const },
    ...{ revision: 1, category_version: 3, scope: null },
  };
  const nothing = { amount: "0.00", rounded: "0.00" };
  const both = { statements: stated(rows), billed: stated(rows), outdated: nothing, pending: nothing };
  return { head, rows, tie: { state: "equal" as const, difference: "0.00", ...both } };
}

function recipient(of: Organisation, value: string) {
  const { name = null, parent, gl = {} } = of.categories?.values?.[value] ?? {};
  const above =
    typeof parent === "string" ? [{ value: parent, name: of.categories?.values?.[parent]?.name ?? null }] : [];
  const contacts = [`${value}@acme.example`];
  return { value, name, path: [{ value, name }, ...above], gl: gl as Record<string, string>, contacts };
}

const numberOf = (period: string, value: string) => `CB-acme-${period}-cost_center.${value}-r1`;

/** To whom a row is stated: what has no tag is stated, too. */
const statedTo = ({ of, query }: Asking) => {
  const by = query.get("by") ?? "";
  return (row: Row) => valueIn(of, row, by) ?? (by.startsWith("tag:") ? "UNTAGGED" : null);
};

function statements(asking: Asking): Answered<"/statements"> {
  const { of } = asking;
  const { head, rows, tie } = monthOf(asking);
  const items = grouped(rows, statedTo(asking)).map(([value, all]) => ({
    ...{
      number: numberOf(head.period, value ?? ""),
      digest: HASH,
      recipient: recipient(of, value ?? ""),
      ...stated(all),
    },
    ...{ previous: null, delta: null, verdict: null, last_reply: null },
  }));
  return { ...head, items, total: stated(rows), tie_out: tie };
}

function statement(asking: Asking): Answered<"/statement"> {
  const { of, query } = asking;
  const value = query.get("value") ?? "";
  const { head, rows: all, tie } = monthOf(asking);
  const rows = all.filter((row) => statedTo(asking)(row) === value);
  const ranking = (by: (row: Row) => string | null) => ({
    items: grouped(rows, by).flatMap(([id, its]) =>
      id === null ? [] : { id: id ?? "", name: nameOf(of, id), within: null, ...stated(its) },
    ),
    ...{ other: null, total: stated(rows) },
  });
  const types = grouped(rows, (row) => row.product_type);
  const portions = [{ number: 1, share: "1.00", methods: ["usage(bytes_in)", "unallocated"] }];
  const reply = { number: numberOf(head.period, value), revision: 1, digest: HASH, data_through: of.last };
  return {
    ...{
      ...head,
      number: reply.number,
      supersedes: null,
      digest: HASH,
      recipient: recipient(of, value),
      ...stated(rows),
    },
    lines: types.map(([type, its]) => ({
      ...{ kind: "direct" as const, product_category: its[0]?.product_category ?? "", product_type: type ?? "" },
      ...stated(its),
    })),
    ...{ previous: null, identities: ranking((row) => row.identity_id), resources: ranking((row) => row.resource_id) },
    ...{ bills: null, topics: ranking((row) => row.topic_name) },
    unit_costs: [
      { per: "gib_in", unit: "GiB", amount: total(rows), usage: "41238.504113", unit_cost: "0.075588839558" },
    ],
    split: {
      policies: types.map(([type]) => ({ product_type: type ?? "", hash: HASH, portions })),
      rules: [{ id: "rules[2]", reason: null, amount: total(rows) }],
      steps: [{ from: "platform", by: "proportional" }],
    },
    verdict: "acknowledged",
    replies: [
      {
        ...{ ...reply, verdict: "disputed", note: "Whose is the connector?", created_by: "ann" },
        ...{ created_at: "2026-11-17T09:12:00Z", is_current: true },
      },
    ],
    tie_out: tie,
  } as Answered<"/statement">;
}

/** What each value is charged with, and what all of them together are cleared by. */
function journal(asking: Asking): Answered<"/periods/{period}/journal"> {
  const [period = ""] = asking.at;
  const query = new URLSearchParams({ period, by: asking.query.get("by") ?? "" });
  const { items, total: whole, tie_out, ...head } = statements({ ...asking, query });
  const debit = whole.rounded;
  const expenses = items.map(({ number, rounded, recipient: { value, name, gl, contacts } }) => ({
    ...{
      kind: "expense" as const,
      account: gl.account ?? "EXPENSE",
      debit: rounded,
      credit: "0.00",
      statement: number,
    },
    ...{ value, name, gl, contacts, text: `Kafka ${period}` },
  }));
  const clearing = {
    ...{ kind: "clearing" as const, account: "CLEARING", debit: "0.00", credit: debit, statement: null, value: null },
    ...{ name: null, gl: {}, contacts: [], text: `Kafka ${period}` },
  };
  const lines = [...expenses, clearing].map((each, n) => ({ ...each, line: n + 1, ...CAN }));
  return { ...head, number: `JE-acme-${period}-r1`, lines, debit, credit: debit };
}

/** The two months of which there are days; the one that is over can be closed. */
function periods(asking: Asking): Answered<"/periods"> {
  const items = ["2026-11", "2026-10"].map((period_id) => {
    const { rows, head } = monthOf({ ...asking, query: new URLSearchParams({ period: period_id }) });
    const state = period_id === "2026-10" ? ("ready" as const) : ("accruing" as const);
    const unbooked = {
      closed_at: null,
      closed_by: null,
      sealed_at: null,
      times_closed: 0,
      digest: null,
      receipt: null,
    };
    return {
      period_id,
      start: head.start_date,
      end: head.end_date,
      state,
      totals: booked(rows),
      blockers: 0,
      ...unbooked,
    };
  });
  return { items, ...CAN, by: ["category:cost_center"], books_begin: null, next_to_close: null };
}

const booked = (rows: readonly Row[]) => ({
  ...{ billed: total(rows), regular: total(rows), corrections: "0.00", adjustments: "0.00", posted: total(rows) },
});

function closing(asking: Asking): Answered<"/periods/{period}/closing-preview"> {
  const [period_id = ""] = asking.at;
  const query = new URLSearchParams({ period: period_id, by: "category:cost_center" });
  const { items, start_date: start, end_date: end, total: whole } = statements({ ...asking, query });
  const { rows } = monthOf({ ...asking, query });
  const values = items.map(({ number, amount, rounded, recipient: { value, name } }) => ({
    ...{ value, name, number, regular: amount, corrections: "0.00", adjustments: "0.00", amount, rounded },
  }));
  return {
    ...{ period_id, start, end, state: "ready", ...CAN, totals: booked(rows), corrections: [], adjustments: [] },
    by: [{ by: "category:cost_center", values, rounded: whole.rounded, difference: "0.00" }],
    ...{ invoices: { invoices: [], total: "0.00", tax: "0.00", difference: null }, opening: [], blockers: [] },
    ...{ warnings: [], digest: HASH, as_of: "2026-11-20T05:00:00Z" },
  };
}

/** The line of a topic's row, and why it has its part. */
function topicRow(row: Row): Answered<"/topic-attributions">["items"][number] {
  const line_id = `${row.date}.${row.resource_id}.${row.product_type}`;
  const link = new URLSearchParams({ date: row.date, line_id, topic_name: row.topic_name ?? "" });
  return {
    ...{ dimension_id: 1, ecosystem: "confluent_cloud", tenant_id: "acme", timestamp: `${row.date}T00:00:00Z` },
    ...{ env_id: row.environment_id, cluster_resource_id: row.resource_id, topic_name: row.topic_name ?? "" },
    ...{ product_category: row.product_category, product_type: row.product_type, amount: write(row.amount) },
    ...{ attribution_method: "bytes_ratio", metadata: { line_id, explain: `topic-attributions/explain?${link}` } },
  };
}

function whyTopic({ of, query }: Asking): Answered<"/topic-attributions/explain"> | undefined {
  const [line_id, topic_name] = [query.get("line_id") ?? "", query.get("topic_name") ?? ""];
  const sharing = of.rows.filter((row) => row.topic_name && topicRow(row).metadata.line_id === line_id);
  const mine = sharing.find((row) => row.topic_name === topic_name);
  if (!mine) return undefined;
  const { timestamp, env_id, cluster_resource_id, product_category, product_type, amount } = topicRow(mine);
  const whole = total(sharing);
  const measure = "topic_bytes_in + topic_bytes_out";
  const contenders = sharing.map((row) => ({
    ...{ topic_name: row.topic_name, value: write(row.amount), ratio: String(ratio(row.amount, read(whole))) },
  }));
  const line = { timestamp, line_id, resource_id: cluster_resource_id, resource_name: nameOf(of, cluster_resource_id) };
  const used = { topic_usage: amount, total_usage: whole, attribution_method: "bytes_ratio" as const };
  return {
    ...{ sentence: `Topic ${topic_name} has its part of ${whole} USD.`, date: mine.date, line_id, topic_name },
    row: {
      timestamp,
      line_id,
      env_id,
      cluster_resource_id,
      topic_name,
      product_category,
      product_type,
      amount,
      ...used,
    },
    ...{ why_nothing: null, attribution_method: "bytes_ratio", evidence_missing: null, visible: null, revision: 1 },
    line: { ...line, product_category, product_type, ...LINE, total_cost: whole },
    methods: [
      { position: 1, method: `usage(${measure})`, applied: true, why_not: null, candidates: contenders.length },
    ],
    evidence: { measure, total: whole, contenders, contenders_total: contenders.length, topics: contenders.length },
    ...{ arithmetic: null, siblings: { rows: sharing.length, sum: whole, equals_line: true }, recomputed: "same" },
    revisions: [{ revision: 1, calculated_at: `${mine.date}T06:12:00Z`, cause: "first", line_id, amount }],
    links: { line: "", rows: "", policy: null, bill: "", revisions: "" },
  };
}
const LINE = { currency: "USD", granularity: "daily", unit: null, description: null, quantity: null, unit_price: null };

/** The three revisions of a day: the first is kept no longer, the last is because the provider changed the bill. */
function revisions({ of, at: [date = ""] }: Asking): Answered<"/days/{date}/revisions"> {
  const rows = of.rows.filter((row) => row.date === date);
  const times = [`${add(date, 2)}T01:51:00Z`, `${add(date, 5)}T02:10:11.5Z`, `${add(date, 10)}T01:51:00.25Z`];
  const items = ["first", "metrics_returned", "bill_changed"].map((cause, n) => ({
    ...{
      dataset: "chargebacks" as const,
      revision: n + 1,
      calculated_at: times[n] ?? "",
      cause,
      run_id: String(n + 1),
    },
    ...{ rows: rows.length, total: total(rows), moved: n ? "14.02" : null, is_kept: n > 0 },
    ...{ billing_fingerprint: FINGERPRINT, policies_hash: HASH },
  }));
  return { date, items };
}

/** Since then, each has a tenth more. */
function difference({ of, query, rows }: Asking): Answered<"/chargebacks/diff"> {
  const [by = "identity_id"] = query.getAll("group_by");
  const items = grouped(rows, (row) => valueIn(of, row, by)).map(([value, all]) => {
    const after = total(all);
    const before = write((read(after) * 10n) / 11n);
    return { dimensions: { [by]: value }, before, after, delta: minus(after, before), causes: ["bill_changed"] };
  });
  const whole = (name: "before" | "after" | "delta") => write(sum(items.map((each) => read(each[name]))));
  const [total_before, total_after, delta] = [whole("before"), whole("after"), whole("delta")];
  return { ...CAN, total_before, total_after, delta, moved: delta, items, other: null };
}

function aggregate({ of, query, rows }: Asking): Answered<"/chargebacks/aggregate"> {
  const by = query.getAll("group_by");
  const unit = query.get("time_bucket") ?? "day";
  const times: Readonly<Record<string, (row: Row) => string>> = {
    month: (row) => `${row.date.slice(0, 7)}-01`,
    all: () => rows[0]?.date ?? "",
  };
  const timeOf = times[unit] ?? ((row) => row.date);
  const isShared = by.some((each) => each.startsWith("category:"));
  const shared = isShared ? { direct_amount: total(rows), shared_in: "0.00", shared_out: "0.00" } : {};
  const sums = (all: readonly Row[]) => ({ total_amount: total(all), usage_amount: total(all), shared_amount: "0.00" });
  const key = (row: Row) => JSON.stringify([timeOf(row), ...by.map((each) => valueIn(of, row, each))]);
  const buckets = grouped(rows, key).map(([pair, all]) => {
    const [time_bucket, ...values] = JSON.parse(pair ?? "[]") as [string, ...(string | null)[]];
    const named = by.map((each, n) => [each, values[n] ?? (each.startsWith("tag:") ? "UNTAGGED" : null)]);
    const direct = isShared ? { direct_amount: total(all), shared_in: "0.00", shared_out: "0.00" } : {};
    return { dimensions: Object.fromEntries(named), time_bucket, ...sums(all), ...direct, row_count: all.length };
  });
  const names = query.get("names") === "true" ? Object.fromEntries(by.map((each) => [each, { ...of.names }])) : {};
  return { buckets, ...sums(rows), ...shared, total_rows: rows.length, names, ...CAN };
}

function topics({ of, query, rows, before, start, end }: Asking): Answered<"/topics"> {
  const known = rows.filter((row) => row.topic_name !== null);
  const items = grouped(known, (row) => row.topic_name).map(([topic_name, all]) => ({
    ...{ cluster_resource_id: all[0]?.resource_id ?? "", cluster_name: nameOf(of, all[0]?.resource_id ?? null) },
    ...{ topic_name: topic_name ?? "", amount: total(all), bytes_in: null, bytes_out: null, zombie: false },
    previous: total(before.filter((row) => row.topic_name === topic_name)),
  }));
  const top = Number(query.get("top") ?? 20);
  const rest = items.slice(top);
  const other = { count: rest.length, previous: null, amount: write(sum(rest.map((each) => read(each.amount)))) };
  const whole = { total: total(known), items: items.slice(0, top), other: rest.length ? other : null };
  return { start_date: start, end_date: end, ...CAN, ...whole, ignored_filters: [] };
}

function unitCosts({ of, query, rows, start, end }: Asking): Answered<"/unit-costs"> {
  const [by = "identity_id"] = query.getAll("group_by");
  const sums = (all: readonly Row[]) => {
    const days = new Set(all.map((row) => row.date)).size;
    const usage = {
      usage: String(all.length * 1000),
      unit_cost: write(read(total(all)) / BigInt(all.length * 1000 || 1)),
    };
    return { amount: total(all), excluded_amount: "0.00", ...usage, days, days_with_usage: days };
  };
  const items = grouped(rows, (row) => valueIn(of, row, by)).map(([value, all]) => ({
    dimensions: { [by]: value },
    ...sums(all),
  }));
  return {
    ...{
      start_date: start,
      end_date: end,
      ...CAN,
      per: "gib_in",
      unit: "GiB",
      covers: "all costs",
      measures: ["bytes_in"],
    },
    ...{ total: sums(rows), items, groups: items.length, missing_days: [end], names: { [by]: of.names } },
    ignored_filters: [],
  };
}

function changes({ of, query, rows, before, start, end }: Asking): Answered<"/chargebacks/changes"> {
  const [by = "identity_id"] = query.getAll("group_by");
  const values = [...new Set([...rows, ...before].map((row) => valueIn(of, row, by)))];
  const items = values.map((value) => {
    const [was, is] = [before, rows].map((all) => all.filter((row) => valueIn(of, row, by) === value)) as [
      Row[],
      Row[],
    ];
    return { dimensions: { [by]: value }, ...changed(was, is) };
  });
  const days = new Set(rows.map((row) => row.date)).size;
  const compared_with = { start_date: add(start, -days), end_date: add(start, -1), days_with_costs: days };
  const head = { start_date: start, end_date: end, timezone: "UTC", days_with_costs: days, compared_with, ...CAN };
  return { ...head, items, other: null, totals: changed(before, rows), names: {} };
}

function bill({ of, rows }: Asking): Answered<"/billing"> {
  const lines = Map.groupBy(rows, (row) => `${row.date}.${row.resource_id}.${row.product_type}`);
  return page(
    [...lines].flatMap(([line_id, all]) =>
      all[0]
        ? {
            ...{ ecosystem: "confluent_cloud", tenant_id: "acme", timestamp: `${all[0].date}T00:00:00Z` },
            ...{ resource_id: all[0].resource_id, product_category: all[0].product_category, ...CAN },
            ...{ product_type: all[0].product_type, quantity: "96", unit_price: "2.38", granularity: "daily" },
            ...{
              total_cost: total(all),
              metadata: { line_id, resource_name: nameOf(of, all[0].resource_id), unit: "CKU-hour" },
            },
          }
        : [],
    ),
  );
}

function policies({ query }: Asking): Answered<"/policies"> {
  const portions = [{ number: 1, share: "1.00", methods: ["usage(bytes_in)", "even(active)", "unallocated"] }];
  const product_type = query.get("product_type") ?? "KAFKA_NUM_CKUS";
  const shipped = { product_type, hash: HASH, source: "shipped" as const, portions, effective_from: null };
  return page([{ ...shipped, first_used_at: "2026-09-23T02:11:09.532101Z" }]);
}

function budgets({ of }: Asking): Answered<"/budgets"> {
  const { rows, head } = monthOf({ of, query: new URLSearchParams() } as Asking);
  const [thresholds, budget] = [[{ on: "actual" as const, percent: "80.00" }], "5000.00"];
  const status = {
    ...{ id: "kafka", name: "Kafka", period_id: head.period, ...CAN, budget, to_date: total(rows) },
    ...{ budget_to_date: "2666.666666666667", days: head.calculated_days, data_through: of.last, missing_days: [] },
    ...{ forecast: "9601.12", projected_over: "4601.12", crossed: thresholds, state: "exceeded" as const },
    calculated_forecast: "9601.12",
  };
  const one = { id: "kafka", name: "Kafka", scope: { product_category: ["KAFKA"] }, parent: null, amounts: {} };
  return page([
    { ...one, monthly: budget, thresholds, notify: [], expected: {}, version: 1, ...WRITTEN, status },
  ]) as never;
}

function contracts({ of }: Asking): Answered<"/contracts"> {
  const dates = { start_date: "2026-09-01", end_date: "2027-01-15" };
  const interval = {
    ...{
      ...dates,
      committed: "120000.00",
      drawn: "73200.12",
      remaining: "46799.88",
      applied: "73200.12",
      overage: "0.00",
    },
    ...{ pace: 0.9012, exhausted_on: { p10: null, p50: null, p90: null }, shortfall: "4312.00", is_over: false },
    ...{ counted_days: 77, pending_days: 1 },
  };
  const spend = { kind: "spend", unit: null, interval: "term", counts: "billed", rollover: false, priority: 100 };
  const commitments = [{ ...spend, applies_to: {}, id: "spend", intervals: [interval] }];
  const sums = { billed: total(of.rows), applied: total(of.rows), applied_to_others: "0.00", not_applied: "0.00" };
  return page([
    { id: "confluent", issuer: "Confluent", ...CAN, ...dates, data_through: of.last, ...sums, commitments },
  ]) as never;
}

/** The last two days of the first identity cost three times the usual. */
function anomalies({ of, start, end }: Asking): Answered<"/anomalies"> {
  const [row] = of.rows;
  const [last, first] = [end, add(end, -1)];
  const more = { product_type: row?.product_type ?? "", resource_id: row?.resource_id ?? "", impact: 700 };
  const explain = `chargebacks/explain?${new URLSearchParams({ date: first, line_id: `${first}.lkc-0.KAFKA_NUM_CKUS`, identity_id: "sa-0" })}`;
  const item = {
    ...{ id: "0123456789abcdef", identity_id: "sa-0", category: null, value: null, product_category: "KAFKA" },
    ...{
      direction: "up",
      state: "open",
      first_date: first,
      last_date: last,
      impact: 812.4,
      belongs_to: {},
      mark: null,
    },
    sentence: `Service 0 was charged 609.30 USD for KAFKA on ${first}, 3.0 times the usual 203.10 USD; 2 days in a row`,
    days: [first, last].map((date) => ({ date, actual: 609.3, expected: 203.1, scales: 9.1 })),
    ...{ told_at: `${last}T03:00:00Z`, goes_with: null, by_policy: false, growth_of: null, others_used_more: false },
    contributors: [{ ...more, identity_id: "sa-0", actual: 1000.1, expected: 300.1, explain }],
  };
  return {
    ...{ start_date: start, end_date: end, ...CAN, judged_through: end, series: 84, items: [item], more: 0 },
    not_judged: [{ date: add(end, -4), reason: "measurements are missing" }],
    drifts: [{ identity_id: "sa-1", product_category: "FLINK", before: 41.2, now: 55.75 }],
    fees: [{ product_type: "KAFKA_BASE", resource_id: "lkc-1", last_date: last, before: 100, now: 150 }],
    ...{ marked: {}, days_to_detection: 1, names: { ...of.names }, resource_names: { ...of.names } },
  } as Answered<"/anomalies">;
}

/** The third day from the end was billed anew. */
function restatements({ start, end }: Asking): Answered<"/restatements"> {
  const moments = { first_calculated_at: `${end}T03:00:00Z`, calculated_at: `${add(end, 1)}T03:00:00Z` };
  const amounts = { total_before: "100.00", total_after: "120.50", delta: "20.50", moved: "10.25" };
  const day = { date: add(end, -2), ...moments, revisions: 1, causes: ["bill_changed"], ...amounts };
  return { ...CAN, ...page(day.date < start ? [] : [day]) };
}

/** One note, on the second day from the end. */
function notes({ end }: Asking): Answered<"/notes"> {
  const written = {
    created_by: "ann",
    created_at: `${end}T09:00:00Z`,
    changed_by: "ann",
    changed_at: `${end}T09:00:00Z`,
  };
  return page([
    { id: "1", start_date: add(end, -1), end_date: add(end, -1), text: "Load test of search", version: 1, ...written },
  ]);
}

function category({ of, query, at: [key = ""] }: Asking): Answered<"/cost-categories/{category_key}"> | undefined {
  if (!of.categories) return undefined;
  const version = Number(query.get("version") ?? versionOf(of));
  const document = [...of.past, of.categories][version - 3] ?? {};
  return { key, version, ...WRITTEN, document: { ...document }, warnings: [] };
}

const size = (document: CategoryDocument) => ({
  rules: document.rules?.length ?? 0,
  values: Object.keys(document.values ?? {}).length,
});

function resolve({ of, query }: Asking): Answered<"/cost-categories/{category_key}/resolve"> {
  const row = of.rows.find((each) => each.identity_id === query.get("identity_id"));
  const document = of.categories ?? {};
  const found = row ? ruleOf(document, row) : null;
  const applied = (index: number) => {
    const { id = `rules[${index}]`, reason = null } = document.rules?.[index] ?? ({} as Rule);
    return { index, id, reason };
  };
  const value = found?.value ?? NOTHING;
  const path = recipient(of, value).path.map((each) => each.value);
  const late = found && row?.["tag:team"] && found.index < 2 ? [applied(2)] : [];
  const nobody = {
    resource_id: null,
    environment_id: null,
    topic_name: null,
    product_type: null,
    product_category: null,
  };
  return {
    subject: { identity_id: query.get("identity_id"), ...nobody },
    ...{ date: query.get("date") ?? of.last ?? "", version: 3, value, path, lost: late },
    parts: [{ value, category_share: "1", path }],
    ...{ rule: found && applied(found.index), reason: found && applied(found.index).reason },
  };
}

const ANSWERS: { readonly [P in Path]?: (asking: Asking) => Answered<P> | undefined } = {
  "/cost-categories": ({ of }) => ({
    items: of.categories ? [{ key: "cost_center", version: versionOf(of), ...WRITTEN, ...size(of.categories) }] : [],
  }),
  "/cost-categories/{category_key}": category,
  "/cost-categories/{category_key}/coverage": ({ of, rows }) => ({
    ...CAN,
    ...coverage(of, of.categories ?? {}, rows),
  }),
  "/cost-categories/{category_key}/resolve": resolve,
  "/cost-categories/{category_key}/history": ({ of }) =>
    page(
      Array.from({ length: versionOf(of) }, (_, n) => ({
        ...{ version: versionOf(of) - n, ...WRITTEN, removed: false, ...size(of.categories ?? {}) },
      })),
    ),
  "/chargebacks/aggregate": aggregate,
  "/chargebacks/changes": changes,
  "/chargebacks/diff": difference,
  "/topic-attributions": ({ rows, query }) =>
    page(
      rows
        .filter((row) => row.topic_name && row.topic_name === (query.get("topic_name") ?? row.topic_name))
        .map(topicRow),
    ),
  "/topic-attributions/explain": whyTopic,
  "/topics": topics,
  "/flow": flow,
  "/graph/diff": graph,
  "/unit-costs": unitCosts,
  "/statements": statements,
  "/statement": statement,
  "/periods": periods,
  "/periods/{period}/journal": journal,
  "/periods/{period}/closing-preview": closing,
  "/periods/{period}/invoices": () => ({ items: [], ...CAN }) as never,
  "/adjustments": () => page([]) as never,
  "/days/{date}/revisions": revisions,
  "/billing": bill,
  "/policies": policies,
  "/budgets": budgets,
  "/contracts": contracts,
  "/anomalies": anomalies,
  "/restatements": restatements,
  "/notes": notes,
  "/notifications": () =>
    page([
      {
        ...{ name: "team-chat", type: "slack" as const, kinds: ["budget.crossed" as const], pending: 1, delivered: 12 },
        ...{ dead: 0, oldest_pending: "2026-11-16T10:00:00Z", last_error: "the receiver answered 503" },
      },
    ]),
  "/tags": ({ of }) =>
    page(
      grouped(of.rows, (row) => row.identity_id).flatMap(([id, all], n) =>
        all[0]?.["tag:team"]
          ? {
              ...{
                tag_id: n,
                tenant_id: "acme",
                entity_type: "identity" as const,
                entity_id: id ?? "",
                tag_key: "team",
              },
              ...{ tag_value: all[0]["tag:team"], created_by: "demo", created_at: "2026-11-20T10:00:00Z" },
              ...{ valid_from: null, valid_to: null },
            }
          : [],
      ),
    ),
  "/tags/keys/{tag_key}/values": ({ of }) => ({
    values: [...new Set(of.rows.flatMap((row) => row["tag:team"] ?? []))].sort(),
  }),
  "/entities/{entity_type}/{entity_id}/tags": ({ of, at: [type, id] }) =>
    (ANSWERS["/tags"]?.({ of } as Asking)?.items ?? []).filter(
      (each) => each.entity_type === type && each.entity_id === id,
    ),
};

const PATTERNS = Object.entries(ANSWERS).map(
  ([path, find]) => [new RegExp(`^${path.replaceAll(/\{\w+\}/g, "([^/]+)")}$`), find] as const,
);

interface TagWrite {
  entity_id: string;
  tag_value?: string;
}

/** The organisation with other teams of some identities, or without one. */
export function withTeams(of: Organisation, items: readonly TagWrite[]): Organisation {
  const values = new Map(items.map((each) => [each.entity_id, each.tag_value ?? null]));
  const teamOf = (row: Row) => {
    const team = values.get(row.identity_id);
    return team === undefined ? row["tag:team"] : team;
  };
  return { ...of, rows: of.rows.map((row) => ({ ...row, "tag:team": teamOf(row) })) };
}

/** What a bulk change of tags does: all of them are replaced, or removed. */
export function changedTags(of: Organisation, path: string, items: readonly TagWrite[]): unknown {
  const has = (id: string) => of.rows.some((row) => row.identity_id === id && row["tag:team"] !== null);
  const there = items.filter((each) => has(each.entity_id)).length;
  if (path === "/tags/bulk-delete") return { deleted_count: there, missing_count: items.length - there, entities: [] };
  return { created_count: items.length - there, updated_count: there, skipped_count: 0, entities: [] };
}

/** What is answered at a path; undefined where there is nothing. */
export function answerOf(path: string, asking: Omit<Asking, "at">): unknown {
  for (const [pattern, find] of PATTERNS) {
    const found = pattern.exec(path);
    if (found) return find({ ...asking, at: found.slice(1).map(decodeURIComponent) });
  }
  return undefined;
}

/** What a change of a cost category answers: what it would move, or what it is now. */
export function changedCategory(asking: Omit<Asking, "at">): unknown {
  if (asking.query.get("dry_run") === "true") return dryRun({ ...asking, at: [] });
  return category({ ...asking, at: ["cost_center"] });
}
