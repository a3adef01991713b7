import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { depthOf, isShaped } from "../../api/categories";
import { read, sum } from "../../money/money";
import {
  assignWords,
  beginningOn,
  type CategoryDocument,
  canonical,
  EMPTY_FORM,
  formOf,
  hasDatedParents,
  KINDS,
  type Match,
  matchWords,
  moved,
  nameIn,
  parentOn,
  parsed,
  type Rule,
  ruleAt,
  ruleOf,
  sumsOf,
  treeOf,
  valuesOf,
  withRule,
  written,
} from "./document";
import { keyOf } from "./first";

const DOCUMENT: CategoryDocument = {
  default: "UNASSIGNED",
  values: {
    orders: { name: "Orders", parent: "retail" },
    payments: { name: "Payments", parent: "retail" },
    platform: { name: "Platform" },
    retail: { name: "Retail" },
  },
  rules: [
    { id: "reorg", match: { identity: ["sa-1"] }, assign: "payments", valid_from: "2026-03-01", reason: "CHG-42" },
    { match: { resource: ["lkc-1"] }, split: { orders: "40", payments: "60" } },
    { match: { all: [{ environment: ["env-1"] }, { not: { topic: { prefix: ["pay."] } } }] }, assign: "platform" },
    { match: { tag: { key: "team" } }, assign: { from_tag: "team" } },
  ],
};

const word = fc.stringMatching(/^[a-z0-9*?.-]{1,8}$/);
const day = fc.integer({ min: 15000, max: 25000 }).map((n) => new Date(n * 86_400_000).toISOString().slice(0, 10));
const texts = fc.array(word, { minLength: 1, maxLength: 4 });
const pattern = fc.oneof(
  texts,
  fc.tuple(fc.constantFrom("exact", "prefix", "regex"), texts).map(([how, all]) => ({ [how]: all })),
);
const match = fc.oneof(
  fc
    .tuple(fc.constantFrom(...Object.keys(KINDS).filter((each) => each !== "tag")), pattern)
    .map(([kind, each]) => ({ [kind]: each })),
  fc.record({ key: word, value: pattern }, { requiredKeys: ["key"] }).map((tag) => ({ tag })),
);
const outcome = fc.oneof(
  word.map((assign) => ({ assign })),
  word.map((key) => ({ assign: { from_tag: key } })),
  fc.uniqueArray(word, { minLength: 2, maxLength: 4 }).map((values) => ({
    split: Object.fromEntries(values.map((each) => [each, "25"])),
  })),
);
const dates = fc.record({ valid_from: day, valid_to: day, id: word, reason: word }, { requiredKeys: [] });

describe("a rule as a form", () => {
  test("says the same when it is written back", () => {
    fc.assert(
      fc.property(match, outcome, dates, (match, outcome, more) => {
        const rule: Rule = { match, ...outcome, ...more };
        const form = formOf(rule);
        expect(form).not.toBeNull();
        if (form) expect(canonical(ruleOf(form))).toBe(canonical(rule));
      }),
    );
  });

  test("is none where a form would lose something", () => {
    const match = { identity: ["sa-1"] };
    for (const rule of [
      { match: { all: [match] }, assign: "a" },
      { match: { identity: "sa-1" }, assign: "a" },
      { match: { identity: [" sa-1"] }, assign: "a" },
      { match: { ...match, topic: ["t"] }, assign: "a" },
      { match: { identity: { list: ["a"] } }, assign: "a" },
      { match: {}, assign: "a" },
      { match, assign: "a", unknown: 1 },
    ])
      expect(formOf(rule as Rule)).toBeNull();
  });

  test("has the last day, a document the day after it", () => {
    const rule = ruleOf({ ...EMPTY_FORM, texts: " sa-1 \n\n sa-2", value: " payments ", until: "2026-09-30" });
    expect(rule).toEqual({ match: { identity: ["sa-1", "sa-2"] }, assign: "payments", valid_to: "2026-10-01" });
  });
});

test("rules in words", () => {
  const called = (value: string) => nameIn(DOCUMENT, value);
  const [first, second, third, fourth] = DOCUMENT.rules ?? [];
  expect([first, second, third, fourth].map((each) => each && matchWords(each.match))).toEqual([
    "identity is sa-1",
    "resource is lkc-1",
    "(environment is env-1) and (not (topic begins with pay.))",
    "tag team is there",
  ]);
  expect([first, second, fourth].map((each) => each && assignWords(each, called))).toEqual([
    "Payments",
    "40% Orders, 60% Payments",
    "what the tag team says",
  ]);
  expect(matchWords({ topic: { regex: ["a", "b", "c", "d", "e", "f", "g"] } })).toBe(
    "topic matches a, b, c, d, e and 2 more",
  );
  expect(nameIn(DOCUMENT, "UNASSIGNED")).toBe("Not assigned");
});

test("whole ids of a rule can be named, and patterns stay as they are", () => {
  const words = (match: Match) => matchWords(match, (kind, id) => `the ${kind} ${id}`);
  expect(words({ any: [{ identity: ["sa-1", "sa-*"] }, { not: { cluster: { exact: ["lkc-*"] } } }] })).toBe(
    "(identity is the identity sa-1, sa-*) or (not (cluster is exactly the cluster lkc-*))",
  );
  expect(words({ environment: { prefix: ["env-"] } })).toBe("environment begins with env-");
  expect(words({ tag: { key: "team", value: ["sa-1"] } })).toBe("tag team is sa-1");
});

test("moving there and back is nothing, and beyond the ends nothing happens", () => {
  fc.assert(
    fc.property(fc.array(fc.integer()), fc.nat(9), fc.nat(9), (list, from, to) => {
      const after = moved(list, from, to);
      expect([...after].sort()).toEqual([...list].sort());
      expect(moved(after, to, from)).toEqual(list);
    }),
  );
});

test("the values that forms offer", () => {
  expect(valuesOf(DOCUMENT)).toEqual(["orders", "payments", "platform", "retail"]);
  expect(valuesOf({ rules: [{ match: {}, assign: "a-$\u007bteam}" }] })).toEqual([]);
  expect(withRule(DOCUMENT, { match: {}, assign: "new" }).rules?.[0]?.assign).toBe("new");
});

describe("the tree of values", () => {
  const bucket = (
    value: string,
    direct: string,
    received: string,
    given: string,
    total: string,
    month = "2026-10",
  ) => ({
    dimensions: { "category:cost_center": value },
    time_bucket: `${month}-01`,
    direct_amount: direct,
    shared_in: received,
    shared_out: given,
    total_amount: total,
  });
  const by = "category:cost_center";
  const buckets = [
    bucket("payments", "10", "1", "0", "11"),
    bucket("payments", "10.000000000001", "0", "0", "10.000000000001", "2026-11"),
    bucket("orders", "30", "3", "0", "33"),
    bucket("platform", "4", "0", "4", "0"),
    bucket("UNASSIGNED", "100", "0", "0", "100"),
    bucket("unregistered", "1", "0", "0", "1"),
  ];
  const sums = sumsOf(buckets, by);
  const rows = treeOf(DOCUMENT, buckets, by);

  test("stands below its parents, the dearest first and the default last", () => {
    expect(rows.map((each) => `${".".repeat(each.depth)}${each.value}`)).toEqual([
      "retail",
      ".orders",
      ".payments",
      "unregistered",
      "platform",
      "UNASSIGNED",
    ]);
  });

  test("adds up to the last digit", () => {
    expect(rows.find((each) => each.value === "retail")).toMatchObject({
      sums: null,
      below: read("54.000000000001"),
      isParent: true,
    });
    const tops = rows.filter((each) => each.depth === 0).map((each) => each.below);
    expect(sum(tops)).toBe(sum([...sums.values()].map((each) => each.total)));
  });

  test("adds each day to what values belong to on it", () => {
    const parent = [
      { value: "retail", valid_to: "2026-11-01" },
      { value: "platform", valid_from: "2026-11-01" },
    ];
    const moved = { ...DOCUMENT, values: { ...DOCUMENT.values, payments: { name: "Payments", parent } } };
    expect(hasDatedParents(DOCUMENT)).toBe(false);
    expect(hasDatedParents(moved)).toBe(true);
    const found = treeOf(moved, buckets, by);
    expect(found.find((each) => each.value === "retail")?.below).toBe(read("44"));
    expect(found.find((each) => each.value === "platform")?.below).toBe(read("10.000000000001"));
    expect(found.map((each) => `${".".repeat(each.depth)}${each.value}`)).toEqual([
      "retail",
      ".orders",
      "platform",
      ".payments",
      "unregistered",
      "UNASSIGNED",
    ]);
    expect(parentOn({ parent: [{ value: "a", valid_from: "2026-02-01" }] }, "2026-01-31")).toBeNull();
    expect(depthOf(moved.values)).toBe(1);
  });

  test("has so many levels", () => {
    expect(depthOf(DOCUMENT.values)).toBe(1);
    expect(depthOf({ a: {} })).toBe(0);
    expect(depthOf(undefined)).toBe(0);
    expect(depthOf({ a: { parent: "b" }, b: { parent: "a" } })).toBe(1);
  });
});

describe("the text of a document", () => {
  test("is read as it was written", () => {
    expect(parsed(written(DOCUMENT))).toEqual({ document: DOCUMENT });
    expect(canonical(DOCUMENT)).toBe(canonical(JSON.parse(written(DOCUMENT))));
  });

  test("says what is wrong with it", () => {
    expect(parsed("{")).toMatchObject({ wrong: expect.stringMatching(/^This is not JSON: /) });
    expect(parsed("[]")).toEqual({ wrong: "The document should be an object: { … }." });
    expect(isShaped(DOCUMENT)).toBe(true);
    expect(isShaped({ rules: [{}] })).toBe(false);
    expect(isShaped({ rules: {} })).toBe(false);
  });
});

test("a mistake knows its rule", () => {
  expect(ruleAt("document.rules[12].assign")).toBe(12);
  expect(ruleAt("document.values.a")).toBeNull();
});

test("a tag's key becomes one of a category", () => {
  expect(["team", "Cost Centre", "1st.unit", "#"].map(keyOf)).toEqual([
    "team",
    "Cost_Centre",
    "st_unit",
    "cost_center",
  ]);
});

describe("an edit that begins on a day", () => {
  const rule = (who: string, assign: string, more: Partial<Rule> = {}): Rule => ({
    match: { identity: [who] },
    assign,
    ...more,
  });
  const day = "2026-11-01";

  test("a changed rule ends on the day, and the new one begins on it and keeps its id", () => {
    const first = rule("sa-0", "search");
    const last = rule("sa-9", "search");
    const base = { rules: [first, rule("sa-1", "payments", { id: "r1" }), last] };
    const next = { rules: [first, rule("sa-1", "orders", { id: "r1" }), last] };
    expect(beginningOn(day, base, next)?.rules).toEqual([
      first,
      rule("sa-1", "orders", { id: "r1", valid_from: day }),
      rule("sa-1", "payments", { valid_to: day }),
      last,
    ]);
  });

  test("rules that hold on one side of the day only stand on that side only", () => {
    const over = rule("sa-1", "payments", { valid_to: "2026-10-01" });
    const later = rule("sa-1", "orders", { valid_from: "2026-12-01" });
    expect(beginningOn(day, { rules: [over] }, { rules: [later] })?.rules).toEqual([later, over]);
    expect(beginningOn(day, { rules: [later] }, { rules: [over] })?.rules).toEqual([]);
  });

  test("values that the past needs stay registered, and what has no dates cannot begin", () => {
    const base = { values: { old: {} }, rules: [rule("sa-1", "old")] };
    const next = { values: { new: {} }, rules: [rule("sa-1", "new")] };
    expect(beginningOn(day, base, next)?.values).toEqual({ old: {}, new: {} });
    expect(beginningOn(day, base, { ...next, default: "new" })).toBeNull();
    expect(beginningOn(day, base, { ...next, share: [{ from: "new" }] })).toBeNull();
  });

  test("before the day the first rule that matches is as it was, and from then on as it was edited", () => {
    const days = ["2026-09-15", "2026-10-31", day, "2026-12-24"];
    const dated = fc.record(
      { from: fc.constantFrom(undefined, ...days), to: fc.constantFrom(undefined, ...days) },
      { requiredKeys: ["from", "to"] },
    );
    const rules = fc.array(
      fc
        .tuple(fc.constantFrom("sa-1", "sa-2"), fc.constantFrom("a", "b", "c"), dated)
        .map(([who, value, { from, to }]) =>
          rule(who, value, { ...(from && { valid_from: from }), ...(to && { valid_to: to }) }),
        ),
      { maxLength: 6 },
    );
    const decided = (document: CategoryDocument | null, who: string, on: string) =>
      document?.rules?.find(
        ({ match, valid_from, valid_to }) =>
          String(match.identity) === who && (!valid_from || valid_from <= on) && (!valid_to || on < valid_to),
      )?.assign;
    fc.assert(
      fc.property(rules, rules, (before, after) => {
        const found = beginningOn(day, { rules: before }, { rules: after });
        for (const who of ["sa-1", "sa-2"])
          for (const on of days)
            expect(decided(found, who, on)).toBe(decided({ rules: on < day ? before : after }, who, on));
      }),
    );
  });
});
