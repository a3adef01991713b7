import type { Access } from "../api/me";
import type { IconName } from "../ui/icons";
import { CATEGORIES, HOME, MONTH_END } from "../url/link";

export interface PageInfo {
  page: string;
  title: string;
  /** The letter that leads here after `g`; pages without one are reached from others. */
  key?: string;
  /** Whether it is about the whole bill, and so for readers alone who see every row. */
  whole?: true;
}

/** A place of the navigation: what it is for, and its pages, of which the first is the one that it leads to. */
export interface Place {
  title: string;
  icon: IconName;
  sentence: string;
  pages: readonly [PageInfo, ...PageInfo[]];
}

/** The places of the navigation, in its order. */
export const PLACES: readonly Place[] = [
  {
    title: "Costs",
    icon: "costs",
    sentence: "How much it was, who caused it, what changed, and whether it is complete.",
    pages: [
      { page: HOME, title: "Costs", key: "c" },
      { page: "anomalies", title: "Stands out", key: "w" },
    ],
  },
  {
    title: "Explore",
    icon: "map",
    sentence: "What the money is spent on, down to each single share and the reason for it.",
    pages: [
      { page: "map", title: "Map", key: "m" },
      { page: "topics", title: "Topics", key: "t" },
      { page: "units", title: "Unit costs", key: "n" },
      { page: "rows", title: "Rows", key: "r" },
    ],
  },
  {
    title: "Savings",
    icon: "findings",
    sentence: "What costs something and is not used, and what deleting it saves.",
    pages: [{ page: "findings", title: "Findings", key: "i" }],
  },
  {
    title: "Ownership",
    icon: "unowned",
    sentence: "Whose costs these are: what has no owner yet, cost categories, tags, and how costs are divided.",
    pages: [
      { page: "unowned", title: "Unowned", key: "u" },
      { page: CATEGORIES, title: "Cost categories", key: "o", whole: true },
      { page: "tags", title: "Tags", key: "a" },
      { page: "policies", title: "Policies", key: "l", whole: true },
    ],
  },
  {
    title: "Bill",
    icon: "bill",
    sentence: "What each team, cost centre or identity owes for a month, beside the provider’s bill and the budgets.",
    pages: [
      { page: "bill", title: "Months", key: "b" },
      { page: "budgets", title: "Budgets", key: "p" },
      { page: "statement", title: "Statements", key: "s" },
      { page: MONTH_END, title: "Month end", key: "e", whole: true },
    ],
  },
  {
    title: "Health",
    icon: "days",
    sentence: "Whether every day is complete and equal to its bill, and how the runs went.",
    pages: [{ page: "days", title: "Days", key: "d", whole: true }],
  },
  {
    title: "Views",
    icon: "views",
    sentence: "What was saved under a name, to open it again.",
    pages: [{ page: "views", title: "Views", key: "v" }],
  },
];

/** Pages that others lead to, and the place that they belong to. */
const ELSEWHERE: Record<string, { title: string; within: string }> = {
  item: { title: "Detail", within: "Costs" },
  moments: { title: "Two moments", within: "Health" },
};

/** Pages that can be used before the first day is calculated. */
const WITHOUT_FIGURES = ["days", CATEGORIES, "tags", "views"];

const PAGES: readonly PageInfo[] = PLACES.flatMap((each) => each.pages);

/** The places with the pages that a reader may open; all of them until the service has said who the reader is. */
export function placesFor({ isKnown, seesAll }: Pick<Access, "isKnown" | "seesAll">): readonly Place[] {
  if (!isKnown || seesAll) return PLACES;
  return PLACES.flatMap((place) => {
    const [first, ...others] = place.pages.filter((each) => !each.whole);
    return first ? [{ ...place, pages: [first, ...others] }] : [];
  });
}

/** The pages of the places that a reader may open. */
export function pagesFor(access: Pick<Access, "isKnown" | "seesAll">): readonly PageInfo[] {
  return placesFor(access).flatMap((each) => each.pages);
}

/** The place that a page belongs to. */
export function placeOf(page: string): Place | undefined {
  const within = ELSEWHERE[page]?.within;
  return PLACES.find((each) => each.title === within || each.pages.some((one) => one.page === page));
}

export function isWhole(page: string): boolean {
  return PAGES.some((each) => each.page === page && each.whole);
}

/** Whether a page is about the costs of calculated days. */
export function hasFigures(page: string): boolean {
  return !WITHOUT_FIGURES.includes(page) && placeOf(page) !== undefined;
}

/** The page that a saved view leads to; one that is there no more is the first. */
export function addressOf(page: string): string {
  return placeOf(page) ? page : HOME;
}

export function titleOf(page: string): string {
  return ELSEWHERE[page]?.title ?? PAGES.find((each) => each.page === page)?.title ?? "Not found";
}
