import type { IconName } from "../ui/icons";

export interface PageInfo {
  page: string;
  title: string;
  icon: IconName;
  /** The letter that leads here after `g`. */
  key: string;
}

/** The pages of the navigation, in its order. */
export const PAGES: readonly PageInfo[] = [
  { page: "costs", title: "Costs", icon: "costs", key: "c" },
  { page: "bill", title: "Bill", icon: "bill", key: "b" },
  { page: "topics", title: "Topics", icon: "topics", key: "t" },
  { page: "map", title: "Map", icon: "map", key: "m" },
  { page: "rows", title: "Rows", icon: "rows", key: "r" },
  { page: "unowned", title: "Unowned", icon: "unowned", key: "u" },
  { page: "days", title: "Days", icon: "days", key: "d" },
  { page: "tags", title: "Tags", icon: "tags", key: "a" },
  { page: "views", title: "Views", icon: "views", key: "v" },
];

export function titleOf(page: string): string {
  return page === "item" ? "Detail" : (PAGES.find((each) => each.page === page)?.title ?? "Not found");
}
