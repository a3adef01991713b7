/** What codes and missing values are called. */
import type { Explained } from "../api/shapes";

export const NOBODY = "UNALLOCATED";
export const UNTAGGED = "UNTAGGED";
export const UNASSIGNED = "UNASSIGNED";

const DIMENSIONS: Record<string, string> = {
  identity_id: "Identity",
  resource_id: "Resource",
  environment_id: "Environment",
  cluster_id: "Cluster",
  cluster_resource_id: "Cluster",
  env_id: "Environment",
  line_id: "Bill line",
  product_type: "Product",
  product_category: "Product group",
  cost_type: "Kind of cost",
  allocation_method: "Method",
  allocation_detail: "Reason",
  ecosystem: "Bill",
};

/** What the empty value of a column is called, for the columns that have one. */
export const OUTSIDE: Readonly<Record<string, string>> = {
  environment_id: "Organisation-wide",
  cluster_id: "In no cluster",
};

const ACRONYMS = new Set(["API", "ID", "SSL", "USM", "REST"]);
const PLURALS: Record<string, string> = { CKUS: "CKUs", CFUS: "CFUs", CSUS: "CSUs" };
const BRANDS: Record<string, string> = { KAFKA: "Kafka", KSQL: "ksqlDB", FLINK: "Flink", TABLEFLOW: "Tableflow" };

export const isCategory = (by: string): boolean => by.startsWith("category:");

/** The key of a cost category, and how many levels up its values are. */
export function categoryOf(by: string): { key: string; level: number } {
  const [key = "", level = "0"] = by.slice("category:".length).split("@");
  return { key, level: Number(level) };
}

/** `Team` for `tag:team`, `Cost centre, 1 up` for `category:cost_center@1`, `Product` for `product_type`. */
export function dimension(by: string): string {
  if (by.startsWith("tag:")) return capital(spaced(by.slice(4)));
  if (isCategory(by)) {
    const { key, level } = categoryOf(by);
    return capital(spaced(key)) + (level ? `, ${level} up` : "");
  }
  return DIMENSIONS[by] ?? capital(by.replace(/_/g, " "));
}

/** A key as words. The page spells `cost centre` one way, however a key is spelt. */
function spaced(key: string): string {
  return key.replace(/[_-]/g, " ").replace(/\bcost center\b/gi, "cost centre");
}

/** `Kafka CKUs` for `KAFKA_NUM_CKUS`. A name that is no such code, as bills of other providers have, stays as it is. */
export function code(text: string): string {
  if (!/^[A-Z][A-Z0-9_]*$/.test(text)) return text;
  const words = text.split("_").filter((word, index) => !(word === "NUM" && index > 0));
  return words.map((word, index) => oneWord(word, index === 0)).join(" ");
}

function oneWord(word: string, first: boolean): string {
  const known = BRANDS[word] ?? PLURALS[word] ?? (ACRONYMS.has(word) ? word : undefined);
  return known ?? (first ? capital(word.toLowerCase()) : word.toLowerCase());
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}

const KINDS: Record<string, string> = { usage: "By usage", shared: "Shared" };

/** What a value of a dimension is called, and the id to stand small behind it, where that says more. */
export function label(by: string, value: string | null, name?: string | null): { name: string; id: string | null } {
  if (by === "identity_id" && value === NOBODY) return { name: "No owner", id: null };
  if (by.startsWith("tag:"))
    return { name: value === null || value === UNTAGGED ? "Without this tag" : value, id: null };
  if (isCategory(by) && value === UNASSIGNED) return { name: "Not assigned", id: null };
  if (value === null || value === "") return { name: OUTSIDE[by] ?? "None", id: null };
  if (by === "product_type" || by === "product_category") return { name: code(value), id: null };
  if (by === "cost_type") return { name: KINDS[value] ?? value, id: null };
  if (by === "allocation_detail") return { name: reason(value), id: null };
  if (by === "allocation_method") return { name: method(value), id: null };
  return name && name !== value ? { name, id: value } : { name: value, id: null };
}

/** Whether a value stands for those who are not known: it is grey everywhere. */
export function isNobody(by: string, value: string | null): boolean {
  if (isCategory(by)) return value === UNASSIGNED;
  return by === "identity_id" ? value === NOBODY : by.startsWith("tag:") && (value === null || value === UNTAGGED);
}

const METHODS: Record<string, string> = {
  usage_ratio: "by measured usage",
  even_split: "evenly",
  proportional: "in proportion to other costs",
  direct: "to its owner",
  terminal: "to no owner",
};

export function method(text: string): string {
  return METHODS[text] ?? text.replace(/_/g, " ");
}

const ATTRIBUTIONS: Record<string, string> = {
  bytes_ratio: "by bytes",
  retained_bytes_ratio: "by retained bytes",
  even_split: "evenly",
  ATTRIBUTION_FAILED: "not at all: the metrics were missing",
};

/** How a line went to topics. */
export function attribution(text: string): string {
  return ATTRIBUTIONS[text] ?? text.replace(/_/g, " ");
}

/** Whose amount an explanation is about. */
export function nameOfPayer(found: Explained): string {
  if ("topic_name" in found) return found.topic_name;
  return label("identity_id", found.identity_id, found.identity_name).name;
}

const REASONS: Record<string, string> = {
  USAGE_RATIO_ALLOCATION: "By measured usage",
  OWNER_ALLOCATION: "To its owner",
  EVEN_SPLIT_ALLOCATION: "Evenly",
  PROPORTIONAL_ALLOCATION: "In proportion to other costs",
  NO_METRICS_LOCATED: "There are no measurements",
  METRICS_UNAVAILABLE: "Measurements could not be fetched",
  NO_USAGE_FOR_ACTIVE_IDENTITIES: "Nobody used it that day",
  NO_OWNER_LOCATED: "The owner is not known",
  NO_ACTIVE_IDENTITIES_LOCATED: "No identity was active that day",
  NO_IDENTITIES_LOCATED: "There is no identity to charge",
  UNKNOWN_PRODUCT_TYPE: "No policy knows the product",
};

/** Every code of `allocation_detail` in words. */
export function reason(text: string): string {
  return REASONS[text] ?? capital(text.toLowerCase().replace(/_/g, " "));
}

const ADVICE: Record<string, string> = {
  NO_METRICS_LOCATED: "Check that the metrics of this resource reach the metrics source, then recalculate the days.",
  METRICS_UNAVAILABLE: "The metrics source did not answer. The days are tried again by themselves.",
  NO_USAGE_FOR_ACTIVE_IDENTITIES: "Idle, and still billed. Ask whether it is needed.",
  NO_OWNER_LOCATED: "Name an owner at the provider, or tag the resource so that a team can see it.",
  NO_ACTIVE_IDENTITIES_LOCATED: "Nobody had access that day. Ask whether it is needed.",
  NO_IDENTITIES_LOCATED: "Create a service account at the provider for whoever uses it.",
  UNKNOWN_PRODUCT_TYPE: "Add a policy for this product to the configuration.",
};

/** What can be done about a reason. */
export function advice(text: string): string | null {
  return ADVICE[text] ?? null;
}

const CAUSES: Record<string, string> = {
  first: "Calculated for the first time",
  bill_changed: "The provider changed the bill",
  policy_changed: "The policies were changed",
  metrics_returned: "Usage was measured again",
  members_changed: "Others were active, or owned what was billed",
  manual: "Recalculated by hand",
  repair: "A damaged file was rebuilt",
  retention: "Past its retention: the rows were deleted",
};

/** Why a day has other rows than before. */
export function cause(text: string): string {
  return CAUSES[text] ?? capital(text.replace(/_/g, " "));
}

const TYPES: Record<string, string> = { api_key: "API key", ksqldb_cluster: "ksqlDB cluster" };

export function type(text: string): string {
  return TYPES[text] ?? text.replace(/_/g, " ");
}
