import type { IconName } from "../ui/icons";

export interface PageInfo {
  page: string;
  title: string;
  icon: IconName;
}

/** The pages of the navigation, in its order. */
export const PAGES: readonly PageInfo[] = [
  { page: "costs", title: "Costs", icon: "costs" },
  { page: "topics", title: "Topics", icon: "topics" },
  { page: "map", title: "Map", icon: "map" },
  { page: "rows", title: "Rows", icon: "rows" },
  { page: "unowned", title: "Unowned", icon: "unowned" },
  { page: "days", title: "Days", icon: "days" },
  { page: "tags", title: "Tags", icon: "tags" },
  { page: "views", title: "Views", icon: "views" },
];

export function titleOf(page: string): string {
  return page === "item" ? "Bill" : (PAGES.find((each) => each.page === page)?.title ?? "Not found");
}
