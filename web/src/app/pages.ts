import type { Access } from "../api/me";
import type { IconName } from "../ui/icons";
import { CATEGORIES, HOME } from "../url/link";

export interface PageInfo {
  page: string;
  title: string;
  icon: IconName;
  /** The letter that leads here after `g`. */
  key: string;
  /** Whether it is about the whole bill, and so for readers alone who see every row. */
  whole?: true;
}

/** The pages of the navigation, in its order. */
export const PAGES: readonly PageInfo[] = [
  { page: "costs", title: "Costs", icon: "costs", key: "c" },
  { page: "bill", title: "Bill", icon: "bill", key: "b" },
  { page: "topics", title: "Topics", icon: "topics", key: "t" },
  { page: "units", title: "Unit costs", icon: "units", key: "n" },
  { page: "findings", title: "Findings", icon: "findings", key: "i" },
  { page: "map", title: "Map", icon: "map", key: "m" },
  { page: "rows", title: "Rows", icon: "rows", key: "r" },
  { page: "unowned", title: "Unowned", icon: "unowned", key: "u" },
  { page: "days", title: "Days", icon: "days", key: "d", whole: true },
  { page: CATEGORIES, title: "Cost categories", icon: "categories", key: "o", whole: true },
  { page: "tags", title: "Tags", icon: "tags", key: "a" },
  { page: "views", title: "Views", icon: "views", key: "v" },
];

/** The pages that a reader may open; all of them until the service has said who the reader is. */
export function pagesFor({ isKnown, seesAll }: Pick<Access, "isKnown" | "seesAll">): readonly PageInfo[] {
  return isKnown && !seesAll ? PAGES.filter((each) => !each.whole) : PAGES;
}

export function isWhole(page: string): boolean {
  return PAGES.some((each) => each.page === page && each.whole);
}

/** Pages that are not in the navigation: others lead to them. */
const ELSEWHERE: Record<string, string> = { item: "Detail", statement: "Statement", moments: "Two moments" };

/** Pages that can be used before the first day is calculated. */
const WITHOUT_FIGURES = ["days", CATEGORIES, "tags", "views"];

/** Whether a page is about the costs of calculated days. */
export function hasFigures(page: string): boolean {
  return !WITHOUT_FIGURES.includes(page) && (page in ELSEWHERE || PAGES.some((each) => each.page === page));
}

/** The page that a saved view leads to; one that is there no more is the first. */
export function addressOf(page: string): string {
  return page === "item" || PAGES.some((each) => each.page === page) ? page : HOME;
}

export function titleOf(page: string): string {
  return ELSEWHERE[page] ?? PAGES.find((each) => each.page === page)?.title ?? "Not found";
}
