/** Questions about cost categories, and changes of them. */
import { categoryOf, isCategory, UNASSIGNED, UNTAGGED } from "../format/names";
import type { CategoryDocument } from "../pages/categories/document";
import { apiQuery, type View } from "../url/view";
import { say } from "../words/say";
import { address, type Query } from "./address";
import { TRIAL, useAnswer, useAnswers } from "./answer";
import { get, getVersion, remove, send, sendVersion, type Versioned } from "./client";
import { useAccess } from "./me";
import { useOf } from "./questions";
import type { Category, DryRun } from "./shapes";

const CATEGORY = "/cost-categories/{category_key}";

/** The cost categories by key. */
export const useCategories = (tenant: string) => useOf(tenant, "/cost-categories");

/** A category with its ETag, which a change of it names. */
export const readCategory = (tenant: string, category_key: string, signal?: AbortSignal) =>
  getVersion(tenant, CATEGORY, { at: { category_key } }, signal);

/** What a category was in one of its versions. */
export const readVersion = (tenant: string, category_key: string, version: number) =>
  get(tenant, CATEGORY, { at: { category_key }, query: { version } });

export const useVersion = (tenant: string, category_key: string, version: number) =>
  useOf(tenant, CATEGORY, { at: { category_key }, query: { version } });

const category = (tenant: string, key: string) => ({
  key: [address(tenant, CATEGORY, { at: { category_key: key } })],
  of: key,
  ask: (signal: AbortSignal) => readCategory(tenant, key, signal),
  alone: true,
});

export const useCategory = (tenant: string, key: string) => useAnswer(category(tenant, key));

/** The registers of the categories that some dimensions name, by key, as far as they are known. */
export function useRegisters(tenant: string, dimensions: readonly string[]): Map<string, Register> {
  // Documents are about the whole bill: who sees a part of it reads values by their keys.
  const { seesAll } = useAccess(tenant);
  const named = seesAll ? dimensions : [];
  const keys = [...new Set(named.filter(isCategory).map((each) => categoryOf(each).key))];
  const found = useAnswers(keys.map((key) => category(tenant, key)));
  return new Map(
    found.flatMap(({ known }) => (known ? [[known.of, documentOf(known.data.body).values ?? {}] as const] : [])),
  );
}

/** The value of a dimension that has what no rule or tag assigns; null where there is none, or while it is not known. */
export function useUnassigned(tenant: string, by: string): string | null {
  const { seesAll } = useAccess(tenant);
  const isOne = isCategory(by);
  const [found] = useAnswers(isOne && seesAll ? [category(tenant, categoryOf(by).key)] : []);
  if (!isOne) return by.startsWith("tag:") ? UNTAGGED : null;
  // Who sees a part of the bill cannot read the document: this is the usual one.
  if (!seesAll) return UNASSIGNED;
  return found?.known ? (documentOf(found.known.data.body).default ?? UNASSIGNED) : null;
}

/** The document of a category, which the API checked when it was saved. */
export function documentOf({ document }: { document: object }): CategoryDocument {
  return isShaped(document) ? document : {};
}

/** Whether the rules of a document can be listed: each is an object with a match. */
export function isShaped(document: { rules?: unknown }): document is CategoryDocument {
  const { rules = [] } = document;
  const isObject = (each: unknown) => typeof each === "object" && each !== null && !Array.isArray(each);
  return Array.isArray(rules) && rules.every((each) => isObject(each) && isObject(each.match));
}

export type Register = NonNullable<CategoryDocument["values"]>;

/** The most levels above a value of a register. */
export function depthOf(values: Register = {}): number {
  const parents = (value: string) => {
    const parent = values[value]?.parent ?? [];
    return typeof parent === "string" ? [parent] : parent.map((each) => each.value);
  };
  const depth = (value: string, seen: readonly string[]): number => {
    const above = parents(value).filter((parent) => !seen.includes(parent));
    return Math.max(seen.length - 1, ...above.map((parent) => depth(parent, [...seen, parent])));
  };
  return Math.max(0, ...Object.keys(values).map((value) => depth(value, [value])));
}

export const useHistory = (tenant: string, category_key: string) =>
  useOf(tenant, `${CATEGORY}/history`, { at: { category_key }, query: { page_size: 20 } });

export const useCoverage = (tenant: string, category_key: string, view: View) =>
  useOf(
    tenant,
    `${CATEGORY}/coverage`,
    { at: { category_key }, query: apiQuery(view, { compare: false }), filters: view.filters },
    category_key !== "",
  );

/** What the category assigns to one subject, which is the query. */
export const useAssigned = (tenant: string, category_key: string, query: Query<`${typeof CATEGORY}/resolve`>) =>
  useOf(tenant, `${CATEGORY}/resolve`, { at: { category_key }, query });

/** What each value has in the period of a view, whatever its filters, by more columns. */
export const useSpread = (tenant: string, view: View, columns: readonly string[], enabled: boolean) =>
  useOf(
    tenant,
    "/chargebacks/aggregate",
    { query: { ...apiQuery(view, { compare: false }), group_by: [...columns], time_bucket: "all", names: true } },
    enabled,
  );

/** What a document would change in the period of a view. */
export function useDryRun(tenant: string, category_key: string, document: CategoryDocument | null, view: View) {
  const query = { ...apiQuery(view, { compare: false }), dry_run: true };
  return useAnswer({
    key: [TRIAL, tenant, category_key, document, query],
    of: document,
    ask: async (): Promise<DryRun> => {
      const body = { document: { ...document } };
      const answer = await send("put", tenant, CATEGORY, { at: { category_key }, query, body });
      if ("version" in answer) throw new Error(say("The service saved what it should only try."));
      return answer;
    },
    enabled: document !== null,
    alone: true,
    again: "once",
  });
}

/** Why a category is changed; `restates`: although that moves amounts of closed months. */
export interface Because {
  reason: string;
  restates?: boolean;
}

/** Write a category; `etag` is that of the version that it replaces, null if there is none. */
export async function saveCategory(
  tenant: string,
  category_key: string,
  document: CategoryDocument,
  { reason, restates = false }: Because,
  etag: string | null,
): Promise<Versioned<Category>> {
  const { body, etag: now } = await sendVersion("put", tenant, CATEGORY, {
    at: { category_key },
    body: { document: { ...document }, reason: reason || null, ...(restates && { restate_closed: true }) },
    headers: etag === null ? { "If-None-Match": "*" } : { "If-Match": etag },
  });
  if (!("version" in body)) throw new Error(say("The service only tried what it should save."));
  return { body, etag: now };
}

/** Remove the version of a category that `etag` is of. Its history stays. */
export const removeCategory = (
  tenant: string,
  category_key: string,
  { reason, restates = false }: Because,
  etag: string | null,
) =>
  remove(
    address<typeof CATEGORY, "delete">(tenant, CATEGORY, {
      at: { category_key },
      query: { ...(reason && { reason }), ...(restates && { restate_closed: true }) },
    }),
    etag === null ? {} : { "If-Match": etag },
  );

/** The rules for single things, as a file for a spreadsheet. */
export const rulesFile = (tenant: string, category_key: string) => ({
  href: address(tenant, `${CATEGORY}/rules.csv`, { at: { category_key } }),
  name: `${tenant}-${category_key}.csv`,
  what: say("single rules"),
});
