/** Questions about cost categories, and changes of them. */
import { useQueries, useQuery } from "@tanstack/react-query";
import { categoryOf, isCategory } from "../format/names";
import type { CategoryDocument } from "../pages/categories/document";
import { apiQuery, type View } from "../url/view";
import { ask, askVersion, type Query, tell, type Versioned } from "./client";
import { useAccess } from "./me";
import { type Of, tenantPath, useOf } from "./questions";
import type { Category, DryRun } from "./shapes";

const pathOf = (tenant: string, key: string, rest = "") =>
  tenantPath(tenant, `cost-categories/${encodeURIComponent(key)}${rest}`);

/** The cost categories by key. */
export const useCategories = (tenant: string) => useOf(tenant, "/cost-categories");

/** A category with its ETag, which a change of it names. */
export const readCategory = (tenant: string, key: string, signal?: AbortSignal): Promise<Versioned<Category>> =>
  askVersion<Category>(pathOf(tenant, key), signal);

const category = (tenant: string, key: string) => ({
  queryKey: [pathOf(tenant, key)],
  queryFn: ({ signal }: { signal: AbortSignal }) => readCategory(tenant, key, signal),
});

export const useCategory = (tenant: string, key: string) =>
  useQuery<Versioned<Category>>({ ...category(tenant, key), placeholderData: (): undefined => undefined });

/** The registers of the categories that some dimensions name, by key, as far as they are known. */
export function useRegisters(tenant: string, dimensions: readonly string[]): Map<string, Register> {
  // Documents are about the whole bill: who sees a part of it reads values by their keys.
  const { seesAll } = useAccess(tenant);
  const named = seesAll ? dimensions : [];
  const keys = [...new Set(named.filter(isCategory).map((each) => categoryOf(each).key))];
  const found = useQueries({ queries: keys.map((key) => category(tenant, key)) });
  return new Map(
    keys.flatMap((key, n) => {
      const document = found[n]?.data?.body.document as CategoryDocument | undefined;
      return document ? [[key, document.values ?? {}] as const] : [];
    }),
  );
}

export type Register = NonNullable<CategoryDocument["values"]>;

function useAbout<T>(tenant: string, key: string, rest: string, query: Query, enabled = true) {
  const address = pathOf(tenant, key, rest);
  return useQuery<T>({
    queryKey: [address, query],
    queryFn: ({ signal }) => ask<T>(address, query, signal),
    enabled,
  });
}

export const useHistory = (tenant: string, key: string) =>
  useAbout<Of<"/cost-categories/{category_key}/history">>(tenant, key, "/history", [["page_size", "20"]]);

export const useCoverage = (tenant: string, key: string, view: View) =>
  useAbout<Of<"/cost-categories/{category_key}/coverage">>(
    tenant,
    key,
    "/coverage",
    apiQuery(view, { compare: false }),
    key !== "",
  );

/** What the category assigns to one subject, which is the query. */
export const useAssigned = (tenant: string, key: string, subject: Query) =>
  useAbout<Of<"/cost-categories/{category_key}/resolve">>(tenant, key, "/resolve", subject);

/** What a document would change in the period of a view. */
export function useDryRun(tenant: string, key: string, document: CategoryDocument | null, view: View) {
  const asked = apiQuery({ ...view, filters: [] }, { compare: false });
  return useQuery<DryRun>({
    queryKey: ["dry run", tenant, key, document, asked],
    queryFn: () => tell<DryRun>("PUT", pathOf(tenant, key), { document }, { query: [...asked, ["dry_run", "true"]] }),
    enabled: document !== null,
    placeholderData: (): undefined => undefined,
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
    refetchInterval: false,
  });
}

/** Write a category; `etag` is that of the version that it replaces, null if there is none. */
export function saveCategory(
  tenant: string,
  key: string,
  document: CategoryDocument,
  reason: string,
  etag: string | null,
): Promise<Category> {
  const version = etag === null ? { "If-None-Match": "*" } : { "If-Match": etag };
  return tell("PUT", pathOf(tenant, key), { document, reason: reason || null }, { headers: version });
}

/** Remove the version of a category that `etag` is of. Its history stays. */
export function removeCategory(tenant: string, key: string, reason: string, etag: string | null): Promise<void> {
  const query: Query = reason ? [["reason", reason]] : [];
  const headers: Record<string, string> = etag === null ? {} : { "If-Match": etag };
  return tell("DELETE", pathOf(tenant, key), undefined, { query, headers });
}

/** The rules for single things, as a file for a spreadsheet. */
export const rulesFile = (tenant: string, key: string) => ({
  path: pathOf(tenant, key, "/rules.csv"),
  query: [],
  name: `${tenant}-${key}.csv`,
  what: "single rules",
});
