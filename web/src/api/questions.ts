import { keepPreviousData, QueryClient, useQuery } from "@tanstack/react-query";
import { apiQuery, type View } from "../url/view";
import type { Aggregate } from "./answers";
import { ask, type Query } from "./client";
import { asProblem } from "./problems";
import type {
  Costs,
  Flow,
  Found,
  Page,
  PipelineStatus,
  Reconciled,
  Run,
  SavedView,
  Tag,
  Tenant,
  TenantSummary,
  Topics,
} from "./shapes";

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

function useAsk<T>(path: string, query: Query = [], options: { enabled?: boolean; every?: number } = {}) {
  return useQuery<T>({
    queryKey: [path, query],
    queryFn: ({ signal }) => ask<T>(path, query, signal),
    enabled: options.enabled ?? true,
    ...(options.every ? { refetchInterval: options.every } : {}),
  });
}

function of(tenant: string, rest: string): string {
  return `tenants/${encodeURIComponent(tenant)}${rest && `/${rest}`}`;
}

export const useTenants = (enabled = true) => useAsk<TenantSummary[]>("tenants", [], { enabled });
export const useViews = (tenant: string) => useAsk<{ items: SavedView[] }>(of(tenant, "views"));
export const useRuns = (tenant: string) => useAsk<{ items: Run[] }>(of(tenant, "runs"), [["limit", "20"]]);

export function useTenant(tenant: string) {
  return useQuery<Tenant>({
    queryKey: [of(tenant, "")],
    queryFn: ({ signal }) => ask(of(tenant, ""), [], signal),
    refetchInterval: (query) => (query.state.data?.run ? 3 : 60) * SECOND,
  });
}

export function usePipeline(tenant: string) {
  return useQuery<PipelineStatus>({
    queryKey: [of(tenant, "pipeline/status")],
    queryFn: ({ signal }) => ask(of(tenant, "pipeline/status"), [], signal),
    refetchInterval: (query) => (query.state.data?.is_running ? 5 : 60) * SECOND,
  });
}

export const INCLUDE: Query = [["include", "issues,days,forecast,topics"]];

/** The costs of a view, by several dimensions; `series` is the one over time. */
export function useCosts(tenant: string, view: View, by: readonly string[], series: string | null, more: Query = []) {
  return useAsk<Costs>(of(tenant, "costs"), costsQuery(view, by, series, more), { enabled: series !== null });
}

export function costsQuery(view: View, by: readonly string[], series: string | null, more: Query = []): Query {
  const dimensions = by.map((each) => ["by", each] as const);
  return [...apiQuery(view), ...dimensions, ...(series ? [["series", series] as const] : []), ...more];
}

export const useTopics = (tenant: string, view: View, top: number) =>
  useAsk<Topics & { currency: string }>(of(tenant, "topics"), [...apiQuery(view), ["top", String(top)]]);

export const useFlow = (tenant: string, view: View, by: readonly string[], top: string, enabled: boolean) =>
  useAsk<Flow>(of(tenant, "flow"), [...apiQuery(view), ...by.map((each) => ["by", each] as const), ["top", top]], {
    enabled,
  });

export const useReconciliation = (tenant: string, view: View) =>
  useAsk<{ days: Reconciled[]; currency: string; total: { billed: string; charged: string; difference: string } }>(
    of(tenant, "reconciliation"),
    apiQuery({ ...view, filters: [] }, { compare: false }),
  );

export const useSearch = (tenant: string, text: string) =>
  useAsk<{ items: Found[] }>(
    of(tenant, "search"),
    [
      ["q", text],
      ["limit", "20"],
    ],
    { enabled: text.length > 0 },
  );

export const useTags = (tenant: string, key: string | null, page: number) =>
  useAsk<Page<Tag>>(of(tenant, "tags"), [
    ...(key ? [["tag_key", key] as const] : []),
    ["page", String(page)],
    ["page_size", "200"],
  ]);

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
  useAsk<Aggregate>(of(tenant, "chargebacks/aggregate"), query, { enabled });

/** One page of a list of rows. */
export function rowsPage<T>(
  tenant: string,
  list: string,
  query: Query,
  page: number,
  size: number,
  signal: AbortSignal,
): Promise<Page<T>> {
  return ask(of(tenant, list), [...query, ["page", String(page)], ["page_size", String(size)]], signal);
}

export function tenantPath(tenant: string, rest: string): string {
  return of(tenant, rest);
}
