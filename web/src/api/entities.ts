/** What the inventory knows of the identity, resource, environment or cluster that a filter names. */
import { NOBODY } from "../format/names";
import type { Filter } from "../url/view";
import { get } from "./client";

/** The kind of entity that a column has ids of. */
export const ENTITIES: Readonly<Record<string, "identity" | "resource">> = {
  identity_id: "identity",
  resource_id: "resource",
  environment_id: "resource",
  cluster_id: "resource",
};

/** The question for the entity of a filter; the answer is null if there is none. */
export const entityOf = (tenant: string, { key, value }: Pick<Filter, "key" | "value">) => ({
  key: ["entity", tenant, key, value],
  of: value,
  ask: async (signal: AbortSignal) => {
    const asked = { query: { search: value, page_size: 50 } };
    const items =
      ENTITIES[key] === "identity"
        ? (await get(tenant, "/identities", asked, signal)).items.map((each) => ({
            ...each,
            id: each.identity_id,
            type: each.identity_type,
          }))
        : (await get(tenant, "/resources", asked, signal)).items.map((each) => ({
            ...each,
            id: each.resource_id,
            type: each.resource_type,
          }));
    return items.find((each) => each.id === value) ?? null;
  },
  enabled: key in ENTITIES && value !== "" && value !== NOBODY,
  alone: true,
  again: 600,
});
