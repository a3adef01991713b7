import { keepPreviousData, QueryClient, useQuery } from "@tanstack/react-query";
import { apiQuery, type View } from "../url/view";
import { ask, type Query } from "./client";
import { asProblem } from "./problems";
import type { Answer, Page, TenantPath, TenantPrefix } from "./shapes";

const SECOND = 1000;

export function createQueries(): QueryClient {
  return new QueryClient({
    defaultOptions: {
      queries: {
        staleTime: 30 * SECOND,
        refetchInterval: 60 * SECOND,
        retry: (failures, error) => failures < 3 && asProblem(error).passes,
        placeholderData: keepPreviousData,
      },
    },
  });
}

export function tenantPath(tenant: string, rest: string): string {
  return `tenants/${encodeURIComponent(tenant)}${rest && `/${rest}`}`;
}

/** What a path of a tenant answers, as the API's document describes it. */
type Of<P extends TenantPath> = Answer<`${TenantPrefix}${P}`>;

/** Ask a path of a tenant, such as `/costs`; the path says what the answer is. */
function useOf<P extends TenantPath>(tenant: string, path: P, query: Query = [], enabled = true) {
  const address = tenantPath(tenant, path.slice(1));
  return useQuery<Of<P>>({
    queryKey: [address, query],
    queryFn: ({ signal }) => ask<Of<P>>(address, query, signal),
    enabled,
  });
}

export const useTenants = (enabled = true) =>
  useQuery<Answer<"/api/v1/tenants">>({
    queryKey: ["tenants"],
    queryFn: ({ signal }) => ask("tenants", [], signal),
    enabled,
  });
export const useViews = (tenant: string) => useOf(tenant, "/views");
export const useRuns = (tenant: string) => useOf(tenant, "/runs", [["limit", "20"]]);

export function useTenant(tenant: string) {
  const address = tenantPath(tenant, "");
  return useQuery<Of<"">>({
    queryKey: [address],
    queryFn: ({ signal }) => ask(address, [], signal),
    refetchInterval: (query) => (query.state.data?.run ? 3 : 60) * SECOND,
  });
}

export function usePipeline(tenant: string) {
  const address = tenantPath(tenant, "pipeline/status");
  return useQuery<Of<"/pipeline/status">>({
    queryKey: [address],
    queryFn: ({ signal }) => ask(address, [], signal),
    refetchInterval: (query) => (query.state.data?.is_running ? 5 : 60) * SECOND,
  });
}

export const INCLUDE: Query = [["include", "issues,days,forecast,topics"]];

/** The costs of a view, by several dimensions; `series` is the one over time. */
export function useCosts(tenant: string, view: View, by: readonly string[], series: string | null, more: Query = []) {
  return useOf(tenant, "/costs", costsQuery(view, by, series, more), series !== null);
}

export function costsQuery(view: View, by: readonly string[], series: string | null, more: Query = []): Query {
  const dimensions = by.map((each) => ["by", each] as const);
  return [...apiQuery(view), ...dimensions, ...(series ? [["series", series] as const] : []), ...more];
}

export const useTopics = (tenant: string, view: View, top: number) =>
  useOf(tenant, "/topics", [...apiQuery(view), ["top", String(top)]]);

export const useFlow = (tenant: string, view: View, by: readonly string[], top: string, enabled: boolean) =>
  useOf(tenant, "/flow", [...apiQuery(view), ...by.map((each) => ["by", each] as const), ["top", top]], enabled);

export const useReconciliation = (tenant: string, view: View) =>
  useOf(tenant, "/reconciliation", apiQuery({ ...view, filters: [] }, { compare: false }));

export const useSearch = (tenant: string, text: string) =>
  useOf(
    tenant,
    "/search",
    [
      ["q", text],
      ["limit", "20"],
    ],
    text.length > 0,
  );

export const useTags = (tenant: string, key: string | null, page: number) =>
  useOf(tenant, "/tags", [...(key ? [["tag_key", key] as const] : []), ["page", String(page)], ["page_size", "200"]]);

export type Unit = "day" | "week" | "month";

/** Sums by some columns and a unit of time, with the names of ids. */
export function aggregateQuery(view: View, by: readonly string[], unit: Unit): Query {
  return [
    ...apiQuery(view, { compare: false }),
    ...by.map((each) => ["group_by", each] as const),
    ["time_bucket", unit],
    ["names", "true"],
  ];
}

export const useAggregate = (tenant: string, query: Query, enabled: boolean) =>
  useOf(tenant, "/chargebacks/aggregate", query, enabled);

/** One page of a list of rows. */
export function rowsPage<T>(
  tenant: string,
  list: string,
  query: Query,
  page: number,
  size: number,
  signal: AbortSignal,
): Promise<Page<T>> {
  return ask(tenantPath(tenant, list), [...query, ["page", String(page)], ["page_size", String(size)]], signal);
}
