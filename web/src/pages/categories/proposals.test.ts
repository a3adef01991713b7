import { describe, expect, test } from "vitest";
import { columnsOf, type Neighbour, neighboursOf, offersOf, proposalFor, type Subject } from "./proposals";

const identity = (name: string | null, id = `sa-${name}`): Subject => ({ kind: "identity", id, name });
const NONE = new Map<string, string>();
const PROD = { environment_id: { id: "env-1", name: "prod" } };

function neighbour(name: string | null, value: string | null, more: Partial<Neighbour> = {}): Neighbour {
  return { ...identity(name), value, places: {}, ...more };
}

const PAYMENTS = [
  neighbour("payments-api", "payments"),
  neighbour("payments-batch", "payments"),
  neighbour("payments-eu-web", "payments"),
  neighbour("payments-old", "orders"),
];

describe("a proposal", () => {
  test("is the value that two in three with the same beginning of a name have, and says how many", () => {
    expect(proposalFor(identity("payments-web"), PAYMENTS, NONE)).toEqual({
      value: "payments",
      why: "3 of 4 named payments-… have it",
    });
    expect(proposalFor(identity("Payments-web"), PAYMENTS, NONE)?.value).toBe("payments");
    expect(proposalFor(identity("pay"), PAYMENTS, NONE)).toBeNull();
    const others = [neighbour("payments-more", "orders"), neighbour("payments-most", "search")];
    expect(proposalFor(identity("payments-web"), [...PAYMENTS, ...others], NONE)).toBeNull();
  });

  test("follows the longest beginning that two have", () => {
    const near = [...PAYMENTS, neighbour("payments-eu-api", "europe"), neighbour("payments-eu-jobs", "europe")];
    expect(proposalFor(identity("payments-eu-new"), near, NONE)).toEqual({
      value: "europe",
      why: "2 of 3 named payments-eu-… have it",
    });
  });

  test("counts neither the subject itself, nor what has no value, nor ids that were made up", () => {
    const itself = neighbour("payments-web", "payments");
    const open = neighbour("payments-new", null);
    expect(proposalFor(itself, [itself, open, neighbour("payments-api", "payments")], NONE)).toBeNull();
    const made = ["sa-1a2b", "sa-3c4d"].map((id) => ({ ...neighbour(null, "payments"), id }));
    expect(proposalFor(identity(null, "sa-5e6f"), made, NONE)).toBeNull();
  });

  test("counts identities and resources alike", () => {
    const near: Neighbour[] = [
      neighbour("payments-api", "payments"),
      neighbour("payments-topics", "payments", { kind: "resource", id: "lkc-1" }),
    ];
    expect(proposalFor({ kind: "resource", id: "lkc-2", name: "payments-dr" }, near, NONE)?.why).toBe(
      "2 of 2 named payments-… have it",
    );
  });

  test("is the value whose name is a word of the name, where others say nothing", () => {
    const called = new Map([
      ["cc1", "Fraud"],
      ["search", "Search"],
    ]);
    expect(proposalFor(identity("pool-fraud-0"), PAYMENTS, called)).toEqual({
      value: "cc1",
      why: "the name has fraud in it",
    });
    expect(proposalFor(identity("search"), [], called)?.value).toBe("search");
    expect(proposalFor(identity("researcher"), [], called)).toBeNull();
  });

  test("follows no beginning that comes before such a word", () => {
    const pools = [neighbour("pool-orders-0", "orders"), neighbour("pool-orders-1", "orders")];
    expect(proposalFor(identity("pool-2"), pools, NONE)?.value).toBe("orders");
    expect(proposalFor(identity("pool-search-2"), pools, new Map([["search", "search"]]))?.value).toBe("search");
    const both = [...PAYMENTS, ...pools];
    expect(proposalFor(identity("payments-web"), both, new Map([["payments", "Payments"]]))?.why).toBe(
      "3 of 4 named payments-… have it",
    );
  });

  test("is what most identities in the same cluster have, or in the same environment", () => {
    const here = { cluster_id: { id: "lkc-1", name: "prod-1" }, ...PROD };
    const near = [
      neighbour("a", "orders", { places: here }),
      neighbour("b", "orders", { places: here }),
      neighbour("c", "search", { places: PROD }),
      neighbour("d", "search", { places: PROD }),
      neighbour("e", "search", { places: PROD }),
      neighbour("f", "search", { places: PROD }),
    ];
    const subject = neighbour("z", null, { places: here });
    expect(proposalFor(subject, [...near, subject], NONE)?.why).toBe("2 of 2 identities in the cluster prod-1 have it");
    const elsewhere = neighbour("z", null, { places: PROD });
    expect(proposalFor(elsewhere, [...near, elsewhere], NONE)).toEqual({
      value: "search",
      why: "4 of 6 identities in the environment prod have it",
    });
  });
});

test("a neighbour has the value of more than half of its assigned cost, and the places of most; no owner is no neighbour", () => {
  const by = "category:team";
  const bucket = (identity_id: string, cluster_id: string, value: string, amount: string) => ({
    dimensions: { identity_id, cluster_id, environment_id: "env-1", [by]: value },
    ...{ time_bucket: "2026-11-01", total_amount: amount, usage_amount: amount, shared_amount: "0.00", row_count: 1 },
  });
  const buckets = [
    bucket("sa-1", "lkc-1", "payments", "2.00"),
    bucket("sa-1", "lkc-2", "orders", "1.50"),
    bucket("sa-1", "lkc-2", "orders", "1.50"),
    bucket("sa-1", "", "NONE", "90.00"),
    bucket("sa-2", "lkc-1", "NONE", "1.00"),
    bucket("sa-3", "lkc-1", "orders", "1.00"),
    bucket("sa-3", "lkc-1", "payments", "1.00"),
    bucket("UNALLOCATED", "lkc-1", "payments", "1.00"),
  ];
  const names = { identity_id: { "sa-1": "payments-api" }, environment_id: { "env-1": "prod" } };
  expect(neighboursOf("identity", { buckets, names }, by, "NONE")).toEqual([
    {
      kind: "identity",
      id: "sa-1",
      name: "payments-api",
      value: "orders",
      places: { cluster_id: { id: "lkc-2", name: "lkc-2" }, ...PROD },
    },
    {
      ...{ kind: "identity", id: "sa-2", name: null, value: null },
      places: { cluster_id: { id: "lkc-1", name: "lkc-1" }, ...PROD },
    },
    // Two share it evenly.
    {
      ...{ kind: "identity", id: "sa-3", name: null, value: null },
      places: { cluster_id: { id: "lkc-1", name: "lkc-1" }, ...PROD },
    },
  ]);
  expect(columnsOf("identity", by)).toEqual(["identity_id", "cluster_id", "environment_id", by]);
});

test("the value that is proposed for most is offered first, with every reason", () => {
  const [a, b, c, d] = ["a", "b", "c", "d"].map((name) => identity(name)) as [Subject, Subject, Subject, Subject];
  const proposals = new Map([
    [a, { value: "orders", why: "one" }],
    [b, { value: "search", why: "two" }],
    [c, { value: "search", why: "three" }],
  ]);
  expect(offersOf([a, b, c, d], (each) => proposals.get(each) ?? null)).toEqual([
    { value: "search", why: "two; three", subjects: [b, c] },
    { value: "orders", why: "one", subjects: [a] },
  ]);
});
