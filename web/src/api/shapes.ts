/** Names for what the API answers, as its own document describes it (`schema.d.ts`). Amounts are decimal strings. */
import type { components } from "./schema";

type Schemas = components["schemas"];

export type Me = Schemas["Me"];
export type TenantRights = Schemas["TenantRights"];
export type Right = TenantRights["rights"][number];
/** Which rows a reader sees: each name has one of its values. */
export type Scope = NonNullable<TenantRights["scope"]>;

export type Tenant = Schemas["TenantOverview"];

export type Costs = Schemas["CostsAnswer"];
export type Breakdown = Schemas["CostBreakdown"];
export type Item = Schemas["CostItem"];
export type Issue = Schemas["CostIssue"];
export type DayFacts = Schemas["CostDay"];
/** Charged what was billed; not what was billed; not calculated yet; without a bill. */
export type DayState = DayFacts["state"];

export type Changes = Schemas["ChangesAnswer"];

export type Contract = Schemas["ContractItem"];
export type Commitment = Schemas["CommitmentItem"];

export type Budget = Schemas["BudgetListItem"];
export type BudgetStatus = Schemas["BudgetStatus"];

export type Topics = Schemas["TopicsSummary"];
export type TopicItem = Schemas["TopicSummaryItem"];

export type UnitCosts = Schemas["UnitCostsAnswer"];
export type Finding = Schemas["FindingItem"];
export type FindingList = Schemas["FindingList"];

export type Flow = Schemas["FlowAnswer"];
export type FlowNode = Schemas["FlowNode"];

export type GraphDiff = Schemas["GraphDiffAnswer"];
export type GraphDiffNode = Schemas["GraphDiffNode"];

export type Aggregate = Schemas["AggregateAnswer"];
export type Bucket = Schemas["AggregateBucket"];

export type Statement = Schemas["StatementAnswer"];
export type StatementFormat = Schemas["StatementFormat"];
export type Statements = Schemas["StatementsAnswer"];
export type StatementRanking = Schemas["StatementRanking"];
export type StatementTie = Schemas["StatementTieOut"];
export type StatementRow = Schemas["StatementRow"];
export type Journal = Schemas["JournalAnswer"];
export type Recipient = Schemas["StatementRecipient"];
/** An amount, exactly and in cents. */
export type Stated = Schemas["StatedAmount"];

export type Months = Schemas["PeriodList"];
export type Month = Schemas["PeriodItem"];
export type ClosingPreview = Schemas["ClosingPreview"];
export type Blocker = Schemas["Blocker"];
export type PostedGrouping = Schemas["PostedGrouping"];
export type Adjustment = Schemas["AdjustmentItem"];
export type Invoice = Schemas["InvoiceItem"];

export type Row = Schemas["ChargebackRow"];
export type TopicRow = Schemas["TopicRow"];
/** Why an identity, or a topic, has an amount of a billing line. */
export type Explained = Schemas["ExplainAnswer"] | Schemas["TopicExplainAnswer"];
export type BillLine = Schemas["BillingLineItem"];
/** One page of a list, whatever is in it. */
export type Page<T> = Omit<Schemas["PageOf_ChargebackRow_"], "items"> & { items: T[] };

export type Policy = Schemas["PolicyItem"];
export type Sink = Schemas["SinkItem"];
export type Anomalies = Schemas["AnomaliesAnswer"];
export type Anomaly = Anomalies["items"][number];
export type Restatements = Schemas["Restatements"];
export type Note = Schemas["NoteItem"];
export type AnomalyMark = Schemas["MarkItem"];
export type SimulationBody = Schemas["SimulationBody"];
export type Simulation = Schemas["SimulationState"];

export type Health = Schemas["HealthAnswer"];
export type HealthProblem = Schemas["HealthProblem"];
export type SourceHealth = Schemas["SourceHealth"];

export type Reconciliation = Schemas["ReconciliationAnswer"];
export type Reconciled = Schemas["ReconciledDayItem"];
export type Revision = Schemas["RevisionItem"];
export type Difference = Schemas["Difference"];
export type Run = Schemas["RunItem"];
export type RunBody = Schemas["RunBody"];
export type PipelineStatus = Schemas["PipelineStatus"];
export type RunProgress = Schemas["RunProgress"];
export type RunList = Schemas["RunList"];

export type Category = Schemas["CategoryItem"];
export type CategoryList = Schemas["CategoryList"];
export type Coverage = Schemas["CoverageAnswer"];
export type DryRun = Schemas["DryRunAnswer"];
export type CategoryPart = Schemas["CategoryPart"];

export type Identity = Schemas["IdentityItem"];
export type InventorySummary = Schemas["InventorySummary"];
export type Resource = Schemas["ResourceItem"];
export type Found = Schemas["FoundItem"];

export type Tag = Schemas["TagItem"];
/** What a bulk change of tags did, or would do: set, or removed. */
export type Effect = Omit<Partial<Schemas["BulkResult"] & Schemas["BulkRemovalResult"]>, "entities"> & {
  entities?: (Schemas["EntityCounts"] | Schemas["EntityRemovals"])[] | null;
};
export type SavedView = Schemas["ViewItem"];
