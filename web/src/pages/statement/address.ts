import { address } from "../../api/address";
import { NOBODY } from "../../format/names";
import { type Filter, filterKey, type View } from "../../url/view";

/** The part of the address that says whose statement. */
export const VALUE = "value";

/** What the part `tab` of the address says where the journal is shown instead of the statements that it is made of. */
export const JOURNAL = "journal";

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

/** The view of the journal of the last month of a view. */
export function journalOf(view: View, by: string): View {
  return { ...statements(view, by), extra: { tab: JOURNAL } };
}

/** The filters that select the rows of a statement. What no rule or tag assigns has the value `unassigned`, and is in two
 * statements: costs that nobody is known to have caused have one of their own. Null if it is not known which they are. */
export function filtersOf(by: string, value: string, unassigned: string | null): Filter[] | null {
  const own = (its: string) => ({ key: by, value: its, not: false });
  const nobody = (not: boolean) => ({ key: "identity_id", value: NOBODY, not });
  if (by === "identity_id") return [own(value)];
  if (value === NOBODY) return unassigned ? [own(unassigned), nobody(false)] : null;
  return value === unassigned ? [own(value), nobody(true)] : [own(value)];
}

/** The journal of a month as CSV: its address, and the name of the file. */
export function journalFile(tenant: string, period: string, by: string): { href: string; name: string } {
  const href = address(tenant, "/periods/{period}/journal", { at: { period }, query: { by, format: "csv" } });
  return { href, name: `${tenant}-${period}-journal.csv` };
}
