import { filterKey, type View } from "../../url/view";

/** The part of the address that says whose statement. */
export const VALUE = "value";

/** Whether statements can be made by a dimension: identities, tags, and cost categories. */
export function isStated(by: string): boolean {
  return by === "identity_id" || by.startsWith("tag:") || (by.startsWith("category:") && filterKey(by) === by);
}

/** The view of all statements of the last month of a view. */
export function statements(view: View, by: string): View {
  return { ...view, by, filters: [], extra: {} };
}

/** The view of the statement of one value. */
export function statementOf(view: View, by: string, value: string): View {
  return { ...statements(view, by), extra: { [VALUE]: value } };
}
