/** What codes and missing values are called. */
import type { Explained } from "../api/shapes";
import { language } from "../words/language";
import { say } from "../words/say";

export const NOBODY = "UNALLOCATED";
export const UNTAGGED = "UNTAGGED";
export const UNASSIGNED = "UNASSIGNED";

const DIMENSIONS: Record<string, string> = {
  identity_id: say("Identity"),
  resource_id: say("Resource"),
  environment_id: say("Environment"),
  cluster_id: say("Cluster"),
  cluster_resource_id: say("Cluster"),
  env_id: say("Environment"),
  line_id: say("Bill line"),
  product_type: say("Product"),
  product_category: say("Product group"),
  cost_type: say("Kind of cost"),
  allocation_method: say("Method"),
  allocation_detail: say("Reason"),
  ecosystem: say("Bill"),
};

/** What the empty value of a column is called, for the columns that have one. */
export const OUTSIDE: Readonly<Record<string, string>> = {
  environment_id: say("Organisation-wide"),
  cluster_id: say("In no cluster"),
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
    const name = capital(spaced(key));
    return level ? say("{name}, {level} up", { name, level }) : name;
  }
  return DIMENSIONS[by] ?? capital(by.replace(/_/g, " "));
}

/** A title amid a sentence: `by product group`. German keeps the capitals of its nouns. */
export function amid(title: string): string {
  return language === "de" ? title : title.toLowerCase();
}

/** A key as words. The page spells `cost centre` one way, however a key is spelt. */
function spaced(key: string): string {
  return key.replace(/[_-]/g, " ").replace(/\bcost cent(er|re)\b/gi, say("cost centre"));
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

const KINDS: Record<string, string> = { usage: say("By usage"), shared: say("Shared") };

/** What a value of a dimension is called, and the id to stand small behind it, where that says more. */
export function label(by: string, value: string | null, name?: string | null): { name: string; id: string | null } {
  if (by === "identity_id" && value === NOBODY) return { name: say("No owner"), id: null };
  if (by.startsWith("tag:"))
    return { name: value === null || value === UNTAGGED ? say("Without this tag") : value, id: null };
  if (isCategory(by) && value === UNASSIGNED) return { name: say("Not assigned"), id: null };
  if (value === null || value === "") return { name: OUTSIDE[by] ?? say("None [no value]"), id: null };
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
  usage_ratio: say("by measured usage"),
  even_split: say("evenly"),
  proportional: say("in proportion to other costs"),
  direct: say("to its owner"),
  terminal: say("to no owner"),
};

export function method(text: string): string {
  return METHODS[text] ?? text.replace(/_/g, " ");
}

const ATTRIBUTIONS: Record<string, string> = {
  bytes_ratio: say("by bytes"),
  retained_bytes_ratio: say("by retained bytes"),
  even_split: say("evenly"),
  ATTRIBUTION_FAILED: say("not at all: the metrics were missing"),
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
  USAGE_RATIO_ALLOCATION: say("By measured usage"),
  OWNER_ALLOCATION: say("To its owner"),
  EVEN_SPLIT_ALLOCATION: say("Evenly"),
  PROPORTIONAL_ALLOCATION: say("In proportion to other costs"),
  NO_METRICS_LOCATED: say("There are no measurements"),
  METRICS_UNAVAILABLE: say("Measurements could not be fetched"),
  NO_USAGE_FOR_ACTIVE_IDENTITIES: say("Nobody used it that day"),
  NO_OWNER_LOCATED: say("The owner is not known"),
  NO_ACTIVE_IDENTITIES_LOCATED: say("No identity was active that day"),
  NO_IDENTITIES_LOCATED: say("There is no identity to charge"),
  UNKNOWN_PRODUCT_TYPE: say("No policy knows the product"),
};

/** Every code of `allocation_detail` in words. */
export function reason(text: string): string {
  return REASONS[text] ?? capital(text.toLowerCase().replace(/_/g, " "));
}

const ADVICE: Record<string, string> = {
  NO_METRICS_LOCATED: say(
    "Check that the metrics of this resource reach the metrics source, then recalculate the days.",
  ),
  METRICS_UNAVAILABLE: say("The metrics source did not answer. The days are tried again by themselves."),
  NO_USAGE_FOR_ACTIVE_IDENTITIES: say("Idle, and still billed. Ask whether it is needed."),
  NO_OWNER_LOCATED: say("Name an owner at the provider, or tag the resource so that a team can see it."),
  NO_ACTIVE_IDENTITIES_LOCATED: say("Nobody had access that day. Ask whether it is needed."),
  NO_IDENTITIES_LOCATED: say("Create a service account at the provider for whoever uses it."),
  UNKNOWN_PRODUCT_TYPE: say("Add a policy for this product to the configuration."),
};

/** What can be done about a reason. */
export function advice(text: string): string | null {
  return ADVICE[text] ?? null;
}

const CAUSES: Record<string, string> = {
  first: say("Calculated for the first time"),
  bill_changed: say("The provider changed the bill"),
  policy_changed: say("The policies were changed"),
  metrics_returned: say("Usage was measured again"),
  members_changed: say("Others were active, or owned what was billed"),
  manual: say("Recalculated by hand"),
  repair: say("A damaged file was rebuilt"),
  retention: say("Past its retention: the rows were deleted"),
};

/** Why a day has other rows than before. */
export function cause(text: string): string {
  return CAUSES[text] ?? capital(text.replace(/_/g, " "));
}

const TYPES: Record<string, string> = {
  organisation: say("Organisation"),
  organization: say("Organisation"),
  environment: say("Environment"),
  resource: say("Resource"),
  topic: say("Topic"),
  kafka_cluster: say("Kafka cluster"),
  kafka_broker: say("Kafka broker"),
  kafka_topic: say("Kafka topic"),
  schema_registry: say("Schema Registry"),
  connector: say("Connector"),
  ksqldb_cluster: say("ksqlDB cluster"),
  flink_compute_pool: say("Flink compute pool"),
  flink_statement: say("Flink statement"),
  metrics_system: say("Measured system"),
  identity: say("Identity"),
  principal: say("Principal"),
  service_account: say("Service account"),
  user: say("User"),
  api_key: say("API key"),
  identity_provider: say("Identity provider"),
  identity_pool: say("Identity pool"),
  application: say("Application"),
  service: say("Service"),
  team: say("Team"),
  group: say("Group"),
  department: say("Department"),
  cost_center: say("Cost centre"),
};

/** What a type of resources or identities is called; plugins may have others, which stay as they are. */
export function type(text: string): string {
  return TYPES[text] ?? text;
}
