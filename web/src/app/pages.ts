import type { Access } from "../api/me";
import type { IconName } from "../ui/icons";
import { CATEGORIES, HOME, MONTH_END } from "../url/link";
import { say } from "../words/say";

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
    title: say("Costs"),
    icon: "costs",
    sentence: say("How much it was, who caused it, what changed, and whether it is complete."),
    pages: [
      { page: HOME, title: say("Costs"), key: "c" },
      { page: "anomalies", title: say("Stands out"), key: "w" },
    ],
  },
  {
    title: say("Explore"),
    icon: "map",
    sentence: say("What the money is spent on, down to each single share and the reason for it."),
    pages: [
      { page: "map", title: say("Map"), key: "m" },
      { page: "topics", title: say("Topics"), key: "t" },
      { page: "units", title: say("Unit costs"), key: "n" },
      { page: "rows", title: say("Rows"), key: "r" },
    ],
  },
  {
    title: say("Savings"),
    icon: "findings",
    sentence: say("What costs something and is not used, and what deleting it saves."),
    pages: [{ page: "findings", title: say("Findings"), key: "i" }],
  },
  {
    title: say("Ownership"),
    icon: "unowned",
    sentence: say("Whose costs these are: what has no owner yet, cost categories, tags, and how costs are divided."),
    pages: [
      { page: "unowned", title: say("Unowned"), key: "u" },
      { page: CATEGORIES, title: say("Cost categories"), key: "o", whole: true },
      { page: "tags", title: say("Tags"), key: "a" },
      { page: "policies", title: say("Policies"), key: "l", whole: true },
    ],
  },
  {
    title: say("Bill"),
    icon: "bill",
    sentence: say(
      "What each team, cost centre or identity owes for a month, beside the provider’s bill and the budgets.",
    ),
    pages: [
      { page: "bill", title: say("Months"), key: "b" },
      { page: "budgets", title: say("Budgets"), key: "p" },
      { page: "statement", title: say("Statements"), key: "s" },
      { page: MONTH_END, title: say("Month end"), key: "e", whole: true },
    ],
  },
  {
    title: say("Health"),
    icon: "days",
    sentence: say("Whether every day is complete and equal to its bill, and how the runs went."),
    pages: [{ page: "days", title: say("Days"), key: "d", whole: true }],
  },
  {
    title: say("Views"),
    icon: "views",
    sentence: say("What was saved under a name, to open it again."),
    pages: [{ page: "views", title: say("Views"), key: "v" }],
  },
];

/** Pages that others lead to, and a page of the place that they belong to. */
const ELSEWHERE: Record<string, { title: string; beside: string }> = {
  item: { title: say("Detail"), beside: HOME },
  moments: { title: say("Two moments"), beside: "days" },
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
  const listed = ELSEWHERE[page]?.beside ?? page;
  return PLACES.find((each) => each.pages.some((one) => one.page === listed));
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
  return ELSEWHERE[page]?.title ?? PAGES.find((each) => each.page === page)?.title ?? say("Not found");
}
