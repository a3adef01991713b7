import { API } from "../url/link";
import { apiQuery, sumsQuery, type View } from "../url/view";
import { type Answered, type Asked, address, type Path, type Query } from "./address";
import { type Answer, asking, type Question, useAnswer } from "./answer";
import { get, read } from "./client";
import { allCostsOf, costsOf } from "./costs";
import { takeEarly } from "./early";
import type { paths } from "./schema";
import type { Explained } from "./shapes";

/** A question to a path of a tenant, by its address. */
export const question = <P extends Path>(
  tenant: string,
  path: P,
  asked: Asked<P> = {},
): Question<Answered<P>, Asked<P>> => ({
  key: [address(tenant, path, asked)],
  of: asked,
  ask: (signal) => get(tenant, path, asked, signal),
  answered: () => takeEarly(address(tenant, path, asked)),
});

/** Ask a path of a tenant, such as `/costs`; the path says what can be asked and what the answer is. */
export function useOf<P extends Path>(
  tenant: string,
  path: P,
  asked: Asked<P> = {},
  enabled = true,
): Answer<Answered<P>, Asked<P>> {
  return useAnswer({ ...question(tenant, path, asked), enabled });
}

type Tenants = paths["/api/v1/tenants"]["get"]["responses"][200]["content"]["application/json"];

export const useTenants = () =>
  useAnswer({ key: ["tenants"], of: null, ask: (signal) => read<Tenants>(`${API}tenants`, signal) });
/** What is wrong with the data, for readers of the whole bill. */
export const useHealth = (tenant: string, enabled: boolean) => useOf(tenant, "/health", {}, enabled);
export const useViews = (tenant: string) => useOf(tenant, "/views");
export const useRuns = (tenant: string) => useOf(tenant, "/runs", { query: { limit: 20 } });

export const useTenant = (tenant: string) =>
  useAnswer({ ...question(tenant, ""), again: (found) => (found?.run ? 3 : 60) });

export const usePipeline = (tenant: string) =>
  useAnswer({ ...question(tenant, "/pipeline/status"), again: (status) => (status?.is_running ? 5 : 60) });

/** The costs of a view by several dimensions, of which the first is over time. */
export const useCosts = (tenant: string, view: View, by: readonly string[], more: Query<"/costs"> = {}) =>
  useOf(tenant, "/costs", costsOf(view, by, more));

/** All that the page of costs shows of a view. */
export const useAllCosts = (tenant: string, view: View) => useOf(tenant, "/costs", allCostsOf(view));

/** What changed of a view since what it is compared with, by a dimension, and why. */
export const useChanges = (tenant: string, view: View, by: string) =>
  useOf(tenant, "/chargebacks/changes", {
    query: { ...apiQuery(view), group_by: [by], limit: 8 },
    filters: view.filters,
  });

export const useTopics = (tenant: string, view: View, top: number) =>
  useOf(tenant, "/topics", { query: { ...sumsQuery(view), top }, filters: view.filters });

export const useFlow = (tenant: string, view: View, by: readonly string[], top: string, enabled: boolean) =>
  useOf(tenant, "/flow", { query: { ...sumsQuery(view), by: [...by], top: [top] }, filters: view.filters }, enabled);

/** The policy of a product type with a hash; none if it is not recorded. */
export const usePolicies = (tenant: string, hash: string, product_type: string) =>
  useOf(tenant, "/policies", { query: { hash, product_type } });

/** A part of the organisation and two levels below it, against the period that the view compares with. */
export const useGraph = (
  tenant: string,
  view: View,
  focus: string,
  leaves: "identities" | "topics",
  enabled: boolean,
) =>
  useOf(
    tenant,
    "/graph/diff",
    {
      query: { ...apiQuery(view), ...(focus && { focus }), leaves, depth: 2, top: 10 },
      filters: view.filters,
    },
    enabled,
  );

export const useReconciliation = (tenant: string, view: View) =>
  useOf(tenant, "/reconciliation", { query: apiQuery(view, { compare: false }) });

export const useRevisions = (tenant: string, date: string) => useOf(tenant, "/days/{date}/revisions", { at: { date } });

/** What changed between two moments, by one dimension; `to` is now if it is null. */
export function useDifference(tenant: string, view: View, from: string, to: string | null, by: string) {
  const query = { ...apiQuery(view, { compare: false }), from_as_of: from, ...(to && { as_of: to }), group_by: [by] };
  return useAnswer(asking(question(tenant, "/chargebacks/diff", { query, filters: view.filters }), { from, to, by }));
}

/** What has a text in its name, with what it cost in the period of a view. */
export const useSearch = (tenant: string, view: View, text: string) =>
  useOf(tenant, "/search", { query: { ...apiQuery(view, { compare: false }), q: text, limit: 20 } }, text.length > 0);

export const useTags = (tenant: string, key: string | null, page: number) =>
  useOf(tenant, "/tags", { query: { ...(key && { tag_key: key }), page, page_size: 200 } });

/** The values that are in use of a key of tags; a key that is not whole yet has none. */
export const useTagValues = (tenant: string, tag_key: string) =>
  useOf(tenant, "/tags/keys/{tag_key}/values", { at: { tag_key } }, /^[A-Za-z0-9][\w.:-]{0,62}$/.test(tag_key));

export type Unit = "day" | "week" | "month";

/** Sums by some columns and a unit of time, with the names of ids. */
export function sumsOf(view: View, by: readonly string[], unit: Unit) {
  const query = { ...apiQuery(view, { compare: false }), group_by: [...by], time_bucket: unit, names: true };
  return { query, filters: view.filters } satisfies Asked<"/chargebacks/aggregate">;
}

/** How many of those who share an amount are listed at first. */
export const EXPLAIN = 20;

/** The explanation that a row links to: a path below the tenant, with its query. */
export function useExplained(tenant: string, link: string, listed: number) {
  const url = `${address(tenant, "")}/${link}&page_size=${listed}`;
  return useAnswer({ key: [url], of: link, ask: (signal) => read<Explained>(url, signal) });
}

/** The statement of a value for a month; `by` is what statements are made by. */
export const statementOf = (period: string, by: string, value: string) => ({ query: { period, by, value } });

export const useStatement = (tenant: string, period: string, by: string, value: string) =>
  useOf(tenant, "/statement", statementOf(period, by, value));

export const useStatements = (tenant: string, period: string, by: string) =>
  useOf(tenant, "/statements", { query: { period, by } });
