/** The document of a cost category, as the API has it, and its rules as a form has them. */
import type { ReactNode } from "preact/compat";
import { add, type Day } from "../../calendar/days";
import { grouped } from "../../format/formats";
import { UNASSIGNED } from "../../format/names";
import { at, read, sum, type Units } from "../../money/money";
import { say } from "../../words/say";

export type Texts = string | readonly string[];
export type Pattern = Texts | Readonly<Record<string, Texts>>;
export type Match = Readonly<Record<string, unknown>>;

interface Dates {
  valid_from?: Day;
  valid_to?: Day;
}

export interface Rule extends Dates {
  id?: string;
  match: Match;
  assign?: string | { from_tag: string };
  split?: Readonly<Record<string, string>>;
  reason?: string;
}

/** A text that always holds, or some that each hold on some days. */
export type Dated = string | readonly ({ value: string } & Dates)[];

export interface CategoryValue extends Dates {
  name?: string;
  parent?: Dated;
  gl?: Readonly<Record<string, Dated>>;
  contacts?: readonly string[];
}

export interface CategoryDocument {
  default?: string;
  values?: Readonly<Record<string, CategoryValue>>;
  sets?: Readonly<Record<string, Pattern>>;
  rules?: readonly Rule[];
  share?: readonly Readonly<Record<string, unknown>>[];
}

/** What a simple rule looks at. */
export const KINDS: Readonly<Record<string, string>> = {
  identity: say("Identity"),
  resource: say("Resource"),
  cluster: say("Cluster"),
  topic: say("Topic"),
  product_type: say("Product"),
  display_name: say("Display name"),
  tag: say("Tag"),
  environment: say("Environment"),
  product_category: say("Product group"),
};

/** The same within a sentence. */
const SUBJECTS: Readonly<Record<string, string>> = {
  identity: say("identity"),
  resource: say("resource"),
  cluster: say("cluster"),
  topic: say("topic"),
  product_type: say("product"),
  display_name: say("display name"),
  environment: say("environment"),
  product_category: say("product group"),
};

/** How a simple rule looks at it. */
export const HOWS: Readonly<Record<string, string>> = {
  list: say("is one of (* and ? for anything)"),
  exact: say("is exactly one of"),
  prefix: say("begins with one of"),
  regex: say("matches one of the regular expressions"),
  any: say("is there at all (tags only)"),
};

/** The same in a sentence, of what is looked at and the texts. */
function sentence(how: string, what: string, texts: ReactNode): ReactNode {
  switch (how) {
    case "list":
      return say("{what} is {texts}", { what, texts });
    case "exact":
      return say("{what} is exactly {texts}", { what, texts });
    case "glob":
      return say("{what} is like {texts}", { what, texts });
    case "set":
      return say("{what} is one of the set {texts}", { what, texts });
    case "prefix":
      return say("{what} begins with {texts}", { what, texts });
    case "regex":
      return say("{what} matches {texts}", { what, texts });
    default:
      return say("{what} {how} {texts}", { what, how, texts });
  }
}

export interface Part {
  value: string;
  percent: string;
}

/** A rule as a form has it. `until` is its last day, while a document has the day after. */
export interface RuleForm {
  id: string;
  kind: string;
  tag: string;
  how: string;
  /** One a line. */
  texts: string;
  gives: "value" | "split" | "tag";
  value: string;
  parts: readonly Part[];
  from: Day;
  until: Day;
  reason: string;
}

const NO_PARTS: readonly Part[] = [
  { value: "", percent: "" },
  { value: "", percent: "" },
];

export const EMPTY_FORM: RuleForm = {
  id: "",
  kind: "identity",
  tag: "",
  how: "list",
  texts: "",
  gives: "value",
  value: "",
  parts: NO_PARTS,
  from: "",
  until: "",
  reason: "",
};

function lines(text: string): string[] {
  return text
    .split("\n")
    .map((each) => each.trim())
    .filter(Boolean);
}

export function ruleOf(form: RuleForm): Rule {
  const texts = lines(form.texts);
  const pattern: Pattern = form.how === "list" ? texts : { [form.how]: texts };
  const tag = { key: form.tag.trim(), ...(form.how === "any" ? {} : { value: pattern }) };
  const split = form.parts
    .filter((each) => each.value.trim())
    .map((each) => [each.value.trim(), each.percent.trim()] as const);
  return {
    ...(form.id.trim() && { id: form.id.trim() }),
    match: form.kind === "tag" ? { tag } : { [form.kind]: pattern },
    ...(form.gives === "split"
      ? { split: Object.fromEntries(split) }
      : { assign: form.gives === "tag" ? { from_tag: form.value.trim() } : form.value.trim() }),
    ...(form.from && { valid_from: form.from }),
    ...(form.until && { valid_to: add(form.until, 1) }),
    ...(form.reason.trim() && { reason: form.reason.trim() }),
  };
}

/** A rule as a form has it; null if it is more than a form can say. */
export function formOf(rule: Rule): RuleForm | null {
  const [[kind, test] = ["", null], ...more] = Object.entries(rule.match);
  if (more.length || !(kind in KINDS)) return null;
  const tag = kind === "tag" ? (test as { key: string; value?: Pattern }) : null;
  const found = patternOf(tag ? tag.value : (test as Pattern));
  if (!found || (found.how === "any" && !tag)) return null;
  const { assign, split } = rule;
  const form: RuleForm = {
    id: rule.id ?? "",
    kind,
    tag: tag?.key ?? "",
    ...found,
    gives: split ? "split" : typeof assign === "object" ? "tag" : "value",
    value: typeof assign === "object" ? assign.from_tag : (assign ?? ""),
    parts: split ? Object.entries(split).map(([value, percent]) => ({ value, percent })) : NO_PARTS,
    from: rule.valid_from ?? "",
    until: rule.valid_to ? add(rule.valid_to, -1) : "",
    reason: rule.reason ?? "",
  };
  // What a form would lose or write differently is left to the text.
  return canonical(ruleOf(form)) === canonical(rule) ? form : null;
}

function patternOf(pattern: Pattern | undefined): Pick<RuleForm, "how" | "texts"> | null {
  if (pattern === undefined) return { how: "any", texts: "" };
  if (typeof pattern === "string") return null;
  if (isTexts(pattern)) return { how: "list", texts: pattern.join("\n") };
  const [[how, texts] = ["", ""], ...more] = Object.entries(pattern);
  if (more.length || !(how in HOWS) || how === "list" || how === "any" || typeof texts === "string") return null;
  return { how, texts: texts.join("\n") };
}

function isTexts(pattern: Pattern): pattern is readonly string[] {
  return Array.isArray(pattern);
}

/** A text that is the same for the same data, whatever the order of keys. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value) ?? "null";
  const entries = Object.entries(value).filter(([, each]) => each !== undefined);
  entries.sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([key, each]) => `${JSON.stringify(key)}:${canonical(each)}`).join()}}`;
}

/** Draws an id of a kind of thing. */
type Named = (kind: string, id: string) => ReactNode;

/** What a rule looks at, in words. */
export function matchWords(match: Match, named: Named = (_, id) => id): ReactNode {
  const [[kind, test] = ["", null]] = Object.entries(match);
  if (kind === "not") return say("not ({condition})", { condition: matchWords(test as Match, named) });
  if (kind === "all" || kind === "any") {
    const conditions = (test as Match[]).map((each) => say("({condition})", { condition: matchWords(each, named) }));
    return joined(conditions, (one, other) =>
      kind === "all" ? say("{one} and {other}", { one, other }) : say("{one} or {other}", { one, other }),
    );
  }
  if (kind !== "tag") return patternWords(SUBJECTS[kind] ?? kind, test as Pattern, (id) => named(kind, id));
  const { key, value } = test as { key: string; value?: Pattern };
  return value === undefined ? say("tag {key} is there", { key }) : patternWords(say("tag {key}", { key }), value);
}

function joined(all: readonly ReactNode[], join: (one: ReactNode, other: ReactNode) => ReactNode): ReactNode {
  const [first = "", ...others] = all;
  return others.reduce<ReactNode>((one, other) => join(one, other), first);
}

const MOST = 5;

function patternWords(what: string, pattern: Pattern, named = (id: string): ReactNode => id): ReactNode {
  const [how, texts] =
    typeof pattern === "string" || isTexts(pattern)
      ? (["list", pattern] as const)
      : at(Object.entries<Texts>(pattern), 0);
  const all = typeof texts === "string" ? [texts] : texts;
  const isId = (text: string) => how === "exact" || (how === "list" && !/[*?]/.test(text));
  const first = all.slice(0, MOST).map((each) => (isId(each) ? named(each) : each));
  const some = joined(first, (one, other) => say("{one}, {other}", { one, other }));
  const n = all.length - MOST;
  return sentence(how, what, n > 0 ? say("{some} and {n} more", { some, n }) : some);
}

/** What a rule gives, in words. */
export function assignWords(rule: Rule, name: (value: string) => string): string {
  if (rule.split)
    return Object.entries(rule.split)
      .map(([value, percent]) => `${say("{number}%", { number: grouped(percent) })} ${name(value)}`)
      .join(", ");
  if (typeof rule.assign === "object") return say("what the tag {key} says", { key: rule.assign.from_tag });
  return name(rule.assign ?? "");
}

/** A list with one of its entries at another place; the same list if there is no such place. */
export function moved<T>(list: readonly T[], from: number, to: number): T[] {
  const all = [...list];
  if (from in all && to in all) all.splice(to, 0, ...all.splice(from, 1));
  return all;
}

/** The values that a document names, for forms to offer. */
export function valuesOf({ values = {}, rules = [] }: CategoryDocument): string[] {
  const named = rules.flatMap((rule) => [
    ...(typeof rule.assign === "string" && !rule.assign.includes("${") ? [rule.assign] : []),
    ...Object.keys(rule.split ?? {}),
  ]);
  return [...new Set([...Object.keys(values), ...named])].sort();
}

/** The document with a rule in front of all others. */
export function withRule(document: CategoryDocument, rule: Rule): CategoryDocument {
  const { rules = [] } = document;
  return { ...document, rules: [rule, ...rules] };
}

/** A rule from a day on; nothing if it has ended by then. */
export function begun(rule: Rule, day: Day): Rule[] {
  if (rule.valid_to !== undefined && rule.valid_to <= day) return [];
  return [rule.valid_from !== undefined && rule.valid_from > day ? rule : { ...rule, valid_from: day }];
}

/** A rule up to a day; nothing if it begins later. */
function ended(rule: Rule, day: Day): Rule[] {
  if (rule.valid_from !== undefined && rule.valid_from >= day) return [];
  return [rule.valid_to !== undefined && rule.valid_to < day ? rule : { ...rule, valid_to: day }];
}

/** How many rules two documents have in common at their beginning and, of the others, at their end. */
export function sameRules({ rules: old = [] }: CategoryDocument, { rules = [] }: CategoryDocument) {
  const same = (a: number, b: number) => canonical(old.at(a)) === canonical(rules.at(b));
  const most = Math.min(old.length, rules.length);
  let [first, last] = [0, 0];
  while (first < most && same(first, first)) first += 1;
  while (last < most - first && same(-1 - last, -1 - last)) last += 1;
  return { first, last };
}

/** The document `next` from a day on, and the document `base` before it. Null where they differ in more than rules and
 * values: the rest has no dates. */
export function beginningOn(day: Day, base: CategoryDocument, next: CategoryDocument): CategoryDocument | null {
  const { rules: old = [], values: formerly = {}, ...undated } = base;
  const { rules = [], values = {}, ...others } = next;
  if (canonical(undated) !== canonical(others)) return null;
  const { first, last } = sameRules(base, next);
  const now = rules.slice(first, rules.length - last).flatMap((each) => begun(each, day));
  const ids = new Set([...rules.slice(0, first), ...now, ...rules.slice(rules.length - last)].map((each) => each.id));
  // Ids are unique: the rule that goes on has it.
  const before = old
    .slice(first, old.length - last)
    .flatMap((each) => ended(each, day))
    .map(({ id, ...each }) => (id === undefined || ids.has(id) ? each : { id, ...each }));
  return {
    ...next,
    ...((base.values ?? next.values) && { values: { ...formerly, ...values } }),
    rules: [...rules.slice(0, first), ...now, ...before, ...rules.slice(rules.length - last)],
  };
}

/** What a value belongs to on a day; null if to nothing. */
export function parentOn(entry: CategoryValue | undefined, day: Day): string | null {
  const { parent = [] } = entry ?? {};
  if (typeof parent === "string") return parent;
  const holds = ({ valid_from = "", valid_to = "9999" }: Dates) => valid_from <= day && day < valid_to;
  return parent.find(holds)?.value ?? null;
}

/** Whether what values belong to changes with time, so that sums of levels are those of single days. */
export function hasDatedParents({ values = {} }: CategoryDocument): boolean {
  return Object.values(values).some(({ parent }) => parent !== undefined && typeof parent !== "string");
}

/** What a value has in a period: by rules, from others, to others, and in the end. */
export interface Sums {
  direct: Units;
  received: Units;
  given: Units;
  total: Units;
}

interface Bucket {
  dimensions: Readonly<Record<string, string | null>>;
  time_bucket: string;
  total_amount: string;
  direct_amount?: string | null;
  shared_in?: string | null;
  shared_out?: string | null;
}

/** The sums of each value over all units of time. */
export function sumsOf(buckets: readonly Bucket[], by: string): Map<string, Sums> {
  const sums = new Map<string, Sums>();
  for (const each of buckets) {
    const value = each.dimensions[by] ?? "";
    const { direct, received, given, total } = sums.get(value) ?? { direct: 0n, received: 0n, given: 0n, total: 0n };
    sums.set(value, {
      direct: direct + read(each.direct_amount ?? each.total_amount),
      received: received + handed(each.shared_in),
      given: given + handed(each.shared_out),
      total: total + read(each.total_amount),
    });
  }
  return sums;
}

/** What values hand on; nothing where the category has no shares. */
function handed(amount: string | null | undefined): Units {
  return amount == null ? 0n : read(amount);
}

export interface ValueRow {
  value: string;
  name: string;
  depth: number;
  /** Null where it has no cost of its own. */
  sums: Sums | null;
  /** Its total with those of everything below it. */
  below: Units;
  isParent: boolean;
}

/** The last day of some sums. */
export function lastDay(buckets: readonly Bucket[]): Day {
  return buckets.reduce((last, { time_bucket }) => (time_bucket > last ? time_bucket : last), "").slice(0, 10);
}

/** What each value and everything below it has, on each day below what it belongs to on that day. */
function totalsBelow(document: CategoryDocument, buckets: readonly Bucket[], by: string): Map<string, Units> {
  const below = new Map<string, Units>();
  for (const each of buckets) {
    const amount = read(each.total_amount);
    const day = each.time_bucket.slice(0, 10);
    for (let value = each.dimensions[by] ?? null; value !== null; value = parentOn(document.values?.[value], day)) {
      const before = below.get(value);
      below.set(value, before === undefined ? amount : before + amount);
    }
  }
  return below;
}

/** The values as a tree as of the last day, from the top, the dearest first and the default last. */
export function treeOf(document: CategoryDocument, buckets: readonly Bucket[], by: string): ValueRow[] {
  const values = document.values ?? {};
  const sums = sumsOf(buckets, by);
  const last = lastDay(buckets);
  const all = [...new Set([...Object.keys(values), ...sums.keys()])];
  const children = (of: string | null) => all.filter((each) => parentOn(values[each], last) === of);
  const totals = totalsBelow(document, buckets, by);
  // Of what neither it nor anything below it has, the sum is none.
  const below = (value: string): Units => (totals.has(value) ? (totals.get(value) as Units) : sum([]));
  const fallback = document.default ?? UNASSIGNED;
  const rows = (of: string | null, depth: number): ValueRow[] =>
    children(of)
      .map((value) => ({
        value,
        name: values[value]?.name ?? value,
        depth,
        sums: sums.get(value) ?? null,
        below: below(value),
        isParent: children(value).length > 0,
      }))
      .sort((a, b) => {
        if ((a.value === fallback) !== (b.value === fallback)) return a.value === fallback ? 1 : -1;
        return a.below < b.below ? 1 : a.below > b.below ? -1 : a.name.localeCompare(b.name);
      })
      .flatMap((row) => [row, ...rows(row.value, depth + 1)]);
  return rows(null, 0);
}

/** The number of the rule that a place of a document is in, such as `document.rules[3].assign`; null if in none. */
export function ruleAt(place: string): number | null {
  const found = /^document\.rules\[(\d+)\]/.exec(place);
  return found ? Number(found[1]) : null;
}

/** A document from its text; the words say what is wrong with the text. */
export function parsed(text: string): { document: CategoryDocument } | { wrong: string } {
  try {
    const value: unknown = JSON.parse(text);
    if (value === null || typeof value !== "object" || Array.isArray(value))
      return { wrong: say("The document should be an object: {braces}.", { braces: "{ … }" }) };
    return { document: value as CategoryDocument };
  } catch (error) {
    return { wrong: say("This is not JSON: {why}", { why: error instanceof Error ? error.message : String(error) }) };
  }
}

export const written = (document: CategoryDocument): string => JSON.stringify(document, null, 2);

/** What a value is called: as its register says, the default in words. */
export function nameIn({ values = {} }: CategoryDocument, value: string): string {
  return values[value]?.name ?? (value === UNASSIGNED ? say("Not assigned") : value);
}
