import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { mistakesOf } from "./mistakes";
import { apiQuery, during, extra, filterPairs, has, readView, toggle, type View, writeView } from "./view";

const value = fc.string({ minLength: 1, maxLength: 12 });
const key = fc.constantFrom(
  "identity_id",
  "resource_id",
  "product_type",
  "tag:team",
  "tag:Cost Centre+1&2=3",
  "category:cost_center",
);
const day = fc.integer({ min: 0, max: 9000 }).map((n) => new Date(n * 86_400_000).toISOString().slice(0, 10));
const filter = fc.record({ key, value, not: fc.boolean() });
const uniqueFilters = fc.uniqueArray(filter, { maxLength: 6, selector: (each) => JSON.stringify(each) });
const named = fc.record({
  period: fc.constantFrom("7d", "30d", "month", "2026-10"),
  start: fc.constant(null),
  end: fc.constant(null),
});
const dated = fc.tuple(day, day).map((days) => {
  const [start = "", end = ""] = days.sort();
  return { period: null, start, end };
});
const view: fc.Arbitrary<View> = fc
  .tuple(
    fc.oneof(named, dated),
    fc.record({
      compare: fc.constantFrom("previous", "year", "none", "2026-09-01..2026-09-30"),
      by: fc.option(key, { nil: null }),
      currency: fc.constantFrom("EUR", "GBP", null),
      filters: uniqueFilters,
      extra: fc.dictionary(fc.constantFrom("table", "sort", "cluster"), value),
    }),
  )
  .map(([period, rest]) => ({ ...period, ...rest }));

describe("the query of a page", () => {
  test("comes back as it was written", () => {
    fc.assert(
      fc.property(view, (each) => {
        expect(readView(writeView(each))).toEqual(each);
      }),
    );
  });

  test("says values with commas as the service reads them", () => {
    const asked = readView("?tag:team=a,b%5C,c&category:cost_center=CORP%5Cx%5C%5C&product_type=d,e");
    expect(asked.filters.map(({ key, value }) => [key, value])).toEqual([
      ["tag:team", "a"],
      ["tag:team", "b,c"],
      ["category:cost_center", "CORP\\x\\"],
      ["product_type", "d,e"],
    ]);
    expect(filterPairs("/costs", asked.filters)).toEqual([
      ["tag:team", "a"],
      ["tag:team", "b\\,c"],
      ["category:cost_center", "CORP\\\\x\\\\"],
      ["product_type", "d,e"],
    ]);
  });

  test("twice is nothing", () => {
    const filters = fc
      .tuple(view, filter)
      .filter(([each, one]) => !has(each, one.key, one.value) && !has(each, one.key, one.value, true));
    fc.assert(
      fc.property(filters, ([each, { key, value, not }]) => {
        expect(toggle(toggle(each, key, value, not), key, value, not)).toEqual(each);
      }),
    );
  });

  test("a value is never wanted and left out at once", () => {
    const both = toggle(toggle(readView(""), "tag:team", "a"), "tag:team", "a", true);
    expect(both.filters).toEqual([{ key: "tag:team", value: "a", not: true }]);
  });

  test("a value some levels up is a filter of the category", () => {
    const up = toggle(readView("?by=category:cost_center@1"), "category:cost_center@1", "retail");
    expect(writeView(up)).toBe("?by=category:cost_center@1&category:cost_center=retail");
    expect(has(up, "category:cost_center@1", "retail")).toBe(true);
    expect(toggle(up, "category:cost_center", "retail").filters).toEqual([]);
    expect(readView("?by=category:&category:@1=x").by).toBeNull();
  });

  test("the usual view has no query", () => {
    expect(writeView(readView(""))).toBe("");
    expect(writeView(readView("?period=30d&compare=previous"))).toBe("");
  });

  test("reads as people would write it", () => {
    const text = "?period=7d&by=tag:team&tag:team=payments&tag:team=risk&not.product_type=SUPPORT";
    expect(writeView(readView(text))).toBe(text);
  });

  test.each([
    "?period=forever",
    "?start_date=2026-02-30&end_date=2026-03-01",
    "?start_date=2026-03-02&end_date=2026-03-01",
    "?compare=x&by=y",
  ])("%s is the usual view, as far as it cannot be understood", (text) => {
    expect(readView(text)).toMatchObject({ period: "30d", start: null, end: null, compare: "previous", by: null });
  });

  test.each([
    ["?period=forever", "the period “forever” is not known"],
    ["?start_date=2026-03-02&end_date=2026-03-01", "the last day, 2026-03-01, is before the first, 2026-03-02"],
    ["?start_date=2026-02-30&end_date=2026-03-01", "“2026-02-30” is no day"],
    ["?end_date=2026-03-01", "one of its two dates is missing"],
    ["?currency=euro", "the currency “euro” is not known"],
    ["?compare=x&by=y", "the comparison “x” is not known; the dimension “y” is not known"],
  ])("says what of %s cannot be understood", (text, words) => {
    expect(mistakesOf(text).join("; ")).toBe(words);
  });

  test("has no mistakes as the page writes it", () => {
    fc.assert(
      fc.property(view, (each) => {
        expect(mistakesOf(writeView(each))).toEqual([]);
      }),
    );
  });

  test("is the API's query", () => {
    const asked = toggle(during(readView("?by=tag:team"), "2026-11-01", "2026-11-07"), "product_type", "SUPPORT", true);
    expect([...Object.entries(apiQuery(asked)), ...filterPairs("/costs", asked.filters)]).toEqual([
      ["start_date", "2026-11-01"],
      ["end_date", "2026-11-07"],
      ["compare", "previous"],
      ["not.product_type", "SUPPORT"],
    ]);
  });

  test("keeps filters that it has no words for, and asks for them where the API has them", () => {
    const text = "?cluster_id=lkc-1&not.line_id=7&topic_name=orders&not.colour=red&shade=dark";
    const { filters, extra } = readView(text);
    expect(extra).toEqual({});
    expect(writeView(readView(text))).toBe(text);
    const names = (list: string) => filterPairs(list, filters).map(([name]) => name);
    expect(names("/costs")).toEqual(["cluster_id", "not.colour", "shade"]);
    expect(names("/chargebacks")).toEqual(["cluster_id", "not.line_id", "not.colour", "shade"]);
    expect(names("/topic-attributions")).toEqual(["not.line_id", "topic_name", "not.colour", "shade"]);
    expect(names("/reconciliation")).toEqual([]);
  });

  test("what only one page knows comes and goes", () => {
    expect(extra(extra(readView(""), "table", "1"), "table", null)).toEqual(readView(""));
  });
});
