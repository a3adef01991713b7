/** Write what rows are filtered and costs grouped by, as the API's document says it: part of `npm run types`. */
import { readFileSync, writeFileSync } from "node:fs";

interface Parameter {
  name: string;
  schema: { properties?: object; anyOf?: { enum?: string[] }[] };
}

const TENANT = "/api/v1/tenants/{tenant_name}";
const [, , output = "src/api/filters.ts"] = process.argv;
const document: { paths: Record<string, { get?: { parameters?: Parameter[] } }> } = JSON.parse(
  readFileSync(new URL("openapi.json", import.meta.url), "utf8"),
);
const parameter = (path: string, name: string) =>
  document.paths[path]?.get?.parameters?.find((each) => each.name === name)?.schema;

const filters: Record<string, string[]> = {};
for (const path of Object.keys(document.paths).filter((each) => !each.endsWith(".csv"))) {
  const excluded = parameter(path, "not.<filter>")?.properties;
  if (excluded) filters[path.slice(TENANT.length)] = Object.keys(excluded).map((each) => each.slice("not.".length));
}
const groups = parameter(`${TENANT}/costs`, "series")?.anyOf?.flatMap((each) => each.enum ?? []);

writeFileSync(
  output,
  `/** Written by \`npm run types\` from the API's document: the columns that each list of a tenant is filtered by, and
 * those that costs are grouped by. Tags and cost categories can be both. */
export const FILTERS: Readonly<Record<string, readonly string[]>> = ${JSON.stringify(filters, null, 2)};

export const GROUPS: readonly string[] = ${JSON.stringify(groups, null, 2)};
`,
);
