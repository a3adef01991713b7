/** Answers about sums, bill lines and changes of tags. Amounts are decimal strings. */

export interface Bucket {
  dimensions: Record<string, string | null>;
  time_bucket: string;
  total_amount: string;
  row_count: number;
}

export interface Aggregate {
  buckets: readonly Bucket[];
  total_amount: string;
  total_rows: number;
  /** The display names of ids, by column. */
  names?: Record<string, Record<string, string>> | null;
}

export interface BillLine {
  timestamp: string;
  resource_id: string;
  product_type: string;
  quantity: string | null;
  unit_price: string | null;
  total_cost: string;
  currency: string;
  metadata: Record<string, string | number | null>;
}

/** What a bulk change of tags did, or would do. */
export interface Effect {
  created_count?: number;
  updated_count?: number;
  skipped_count?: number;
  deleted_count?: number;
  missing_count?: number;
  /** Of the first thousand, and only of a trial. */
  entities?: (Omit<Effect, "entities"> & { entity_type: string; entity_id: string })[] | null;
}
