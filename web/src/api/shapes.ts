/** Names for what the API answers, as its own document describes it (`schema.d.ts`). Amounts are decimal strings. */
import type { components, paths } from "./schema";

type Schemas = components["schemas"];

/** What a GET of a path of the API answers. */
export type Answer<P extends keyof paths> = paths[P] extends {
  get: { responses: { 200: { content: { "application/json": infer Body } } } };
}
  ? Body
  : never;

/** The paths below a tenant, without what stands before them. */
export type TenantPath = keyof paths extends infer P
  ? P extends `${TenantPrefix}${infer Rest}`
    ? Rest
    : never
  : never;
export type TenantPrefix = "/api/v1/tenants/{tenant_name}";

export type Tenant = Schemas["TenantOverview"];

export type Costs = Schemas["CostsAnswer"];
export type Breakdown = Schemas["CostBreakdown"];
export type Item = Schemas["CostItem"];
export type Issue = Schemas["CostIssue"];
export type DayFacts = Schemas["CostDay"];
/** Charged what was billed; not what was billed; not calculated yet; without a bill. */
export type DayState = DayFacts["state"];

export type Topics = Schemas["TopicsSummary"];
export type TopicItem = Schemas["TopicSummaryItem"];

export type Flow = Schemas["FlowAnswer"];
export type FlowNode = Schemas["FlowNode"];

export type Aggregate = Schemas["AggregateAnswer"];
export type Bucket = Schemas["AggregateBucket"];

export type Row = Schemas["ChargebackRow"];
export type BillLine = Schemas["BillingLineItem"];
/** One page of a list, whatever is in it. */
export type Page<T> = Omit<Schemas["PageOf_ChargebackRow_"], "items"> & { items: T[] };

export type Reconciliation = Schemas["Reconciliation"];
export type Reconciled = Schemas["ReconciledDayItem"];
export type Run = Schemas["RunItem"];
export type RunList = Schemas["RunList"];

export type Identity = Schemas["IdentityItem"];
export type Resource = Schemas["ResourceItem"];
export type Found = Schemas["FoundItem"];

export type Tag = Schemas["TagItem"];
/** What a bulk change of tags did, or would do: set, or removed. */
export type Effect = Omit<Partial<Schemas["BulkResult"] & Schemas["BulkRemovalResult"]>, "entities"> & {
  entities?: (Schemas["EntityCounts"] | Schemas["EntityRemovals"])[] | null;
};
export type SavedView = Schemas["ViewItem"];
