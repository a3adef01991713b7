import { keepPreviousData, QueryClient, useQuery } from "@tanstack/react-query";
import { apiQuery, sumsQuery, type View } from "../url/view";
import { ask, type Query } from "./client";
import { asProblem } from "./problems";
import type { Answer, Explained, Page, TenantPath, TenantPrefix } from "./shapes";

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
export type Of<P extends TenantPath> = Answer<`${TenantPrefix}${P}`>;

/** Ask a path of a tenant, such as `/costs`; the path says what the answer is. */
export function useOf<P extends TenantPath>(tenant: string, path: P, query: Query = [], enabled = true) {
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
  return [...sumsQuery(view), ...dimensions, ...(series ? [["series", series] as const] : []), ...more];
}

/** What changed of a view since what it is compared with, by a dimension, and why. */
export const useChanges = (tenant: string, view: View, by: string) =>
  useOf(tenant, "/chargebacks/changes", [...apiQuery(view), ["group_by", by], ["limit", "8"]]);

export const useTopics = (tenant: string, view: View, top: number) =>
  useOf(tenant, "/topics", [...sumsQuery(view), ["top", String(top)]]);

export const useFlow = (tenant: string, view: View, by: readonly string[], top: string, enabled: boolean) =>
  useOf(tenant, "/flow", [...sumsQuery(view), ...by.map((each) => ["by", each] as const), ["top", top]], enabled);

/** What a unit of usage cost, by one dimension. */
export const useUnitCosts = (tenant: string, query: Query) => useOf(tenant, "/unit-costs", query);

export const useFindings = (tenant: string, query: Query) => useOf(tenant, "/findings", query);

/** The policy of a product type with a hash; none if it is not recorded. */
export const usePolicies = (tenant: string, hash: string, product: string) =>
  useOf(tenant, "/policies", [
    ["hash", hash],
    ["product_type", product],
  ]);

/** A part of the organisation and two levels below it, against the period that the view compares with. */
export const useGraph = (tenant: string, view: View, focus: string, leaves: string, enabled: boolean) =>
  useOf(
    tenant,
    "/graph/diff",
    [
      ...apiQuery(view),
      ...(focus ? [["focus", focus] as const] : []),
      ["leaves", leaves],
      ["depth", "2"],
      ["top", "10"],
    ],
    enabled,
  );

export const useReconciliation = (tenant: string, view: View) =>
  useOf(tenant, "/reconciliation", apiQuery({ ...view, filters: [] }, { compare: false }));

export const useRevisions = (tenant: string, day: string) => {
  const address = tenantPath(tenant, `days/${day}/revisions`);
  return useQuery<Of<"/days/{date}/revisions">>({
    queryKey: [address],
    queryFn: ({ signal }) => ask(address, [], signal),
  });
};

/** What changed between two moments, by one dimension; `to` is now if it is null. */
export const useDifference = (tenant: string, view: View, from: string, to: string | null, by: string) =>
  useOf(tenant, "/chargebacks/diff", [
    ...apiQuery(view, { compare: false }),
    ["from_as_of", from],
    ...(to ? [["as_of", to] as const] : []),
    ["group_by", by],
  ]);

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

/** How many of those who share an amount are listed at first. */
export const EXPLAIN = 20;

/** The explanation that a row links to: a path below the tenant, with its query. */
export function useExplained(tenant: string, link: string, listed: number) {
  const [path = "", query = ""] = link.split("?");
  const address = tenantPath(tenant, path);
  const asked: Query = [...new URLSearchParams(query), ["page_size", String(listed)]];
  return useQuery<Explained>({
    queryKey: [address, asked],
    queryFn: ({ signal }) => ask<Explained>(address, asked, signal),
  });
}

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

/** The statement of a value for a month; `by` is what statements are made by. */
export function statementQuery(period: string, by: string, value: string): Query {
  return [
    ["period", period],
    ["by", by],
    ["value", value],
  ];
}

export const useStatement = (tenant: string, period: string, by: string, value: string) =>
  useOf(tenant, "/statement", statementQuery(period, by, value));

export const useStatements = (tenant: string, period: string, by: string) =>
  useOf(tenant, "/statements", [
    ["period", period],
    ["by", by],
  ]);
