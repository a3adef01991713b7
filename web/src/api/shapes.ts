/** The API's answers, as the page reads them. Amounts are decimal strings. */

export interface Item {
  value: string | null;
  name: string | null;
  kind: string | null;
  deleted_at: string | null;
  amount: string;
  previous: string | null;
  usage: string;
  rows: number;
  amounts?: string[] | null;
}

export interface Others {
  count: number;
  amount: string;
  previous: string | null;
  amounts?: string[] | null;
}

export interface Mover {
  value: string | null;
  name: string | null;
  amount: string;
  previous: string | null;
}

export interface Breakdown {
  by: string;
  items: Item[];
  other: Others | null;
  movers: Mover[];
}

export interface Issue {
  reason: string;
  unallocated: boolean;
  amount: string;
  rows: number;
  resources: number;
}

export interface DayFacts {
  date: string;
  state: DayState;
  billed: string;
  charged: string;
  difference: string;
  topics: boolean;
  error: string | null;
}

/** Charged what was billed; not what was billed; not calculated yet; without a bill. */
export type DayState = "equal" | "differs" | "pending" | "none";

export interface Forecast {
  until: string;
  actual_to: string;
  actual: string;
  expected: string;
  low: string;
  high: string;
  method: string;
}

export interface TopicItem {
  cluster_resource_id: string;
  cluster_name?: string | null;
  topic_name: string;
  amount: string;
  previous: string | null;
  bytes_in?: string | null;
  bytes_out?: string | null;
  zombie?: boolean | null;
}

export interface Topics {
  start_date?: string;
  end_date?: string;
  total: string;
  items: TopicItem[];
  other: { count: number; amount: string; previous?: string | null } | null;
  ignored_filters?: string[];
}

export interface Costs {
  start_date: string;
  end_date: string;
  timezone: string;
  currency: string;
  compared_with: { start_date: string; end_date: string; days_with_costs: number } | null;
  days_with_costs: number;
  times: string[];
  amounts: string[];
  previous_amounts: (string | null)[];
  total: {
    amount: string;
    usage: string;
    shared: string;
    rows: number;
    unallocated: string;
    previous: string | null;
    previous_unallocated: string | null;
  };
  breakdowns: Breakdown[];
  issues?: Issue[] | null;
  days?: DayFacts[] | null;
  forecast?: Forecast | null;
  topics?: Topics | null;
}

export interface TagKey {
  key: string;
  /** The part of the cost that has it, from 0 to 1, as a decimal string. */
  coverage: string | null;
}

export interface Tenant {
  tenant_name: string;
  ecosystem: string;
  currency: string;
  first_date: string | null;
  last_date: string | null;
  lookback_days: number;
  tag_keys: TagKey[];
  features: { can_tag: boolean; can_run: boolean; topics: boolean };
  run: { stage: string | null; date: string | null } | null;
}

export interface TenantSummary {
  tenant_name: string;
  ecosystem: string;
  last_calculated_date: string | null;
}

export interface PipelineStatus {
  is_running: boolean;
  permanent_failure: string | null;
  last_run: string | null;
  last_result: { errors: string[]; completed_at: string } | null;
}

export interface Row {
  dimension_id: number;
  timestamp: string;
  resource_id: string;
  resource_name?: string | null;
  product_category: string;
  product_type: string;
  identity_id: string;
  identity_name?: string | null;
  cost_type: string;
  amount: string;
  allocation_method: string;
  allocation_detail: string | null;
  metadata: Record<string, string | number | null>;
  tags: Record<string, string>;
}

export interface Page<T> {
  items: T[];
  total: number;
  page: number;
  page_size: number;
  pages: number;
}

export interface Found {
  kind: string;
  id: string;
  name: string | null;
  type: string | null;
  parent_id: string | null;
  amount: string | null;
}

export interface Reconciled {
  date: string;
  state: DayState;
  billed: string;
  charged: string;
  difference: string;
  topics?: boolean;
  error?: string | null;
  fingerprint?: string | null;
  calculated_at?: string | null;
  run?: string | null;
}

export interface Run {
  run_id: string;
  status: string;
  started_at: string;
  completed_at: string | null;
  dates_gathered: number;
  dates_calculated: number;
  chargeback_rows_written: number;
  errors: string[];
}

export interface Tag {
  tag_id: number;
  entity_type: string;
  entity_id: string;
  tag_key: string;
  tag_value: string;
  created_by: string;
  created_at: string;
}

export interface FlowNode {
  column: number;
  by: string;
  value: string | null;
  name: string | null;
  amount: string;
  previous: string | null;
  other: number | null;
}

export interface FlowLink {
  source: number;
  target: number;
  amount: string;
  previous: string | null;
}

export interface Flow {
  start_date?: string;
  end_date?: string;
  currency: string;
  by: string[];
  nodes: FlowNode[];
  links: FlowLink[];
}

export interface SavedView {
  id: string;
  name: string;
  page: string;
  query: string;
  created_by: string;
  created_at: string;
}
