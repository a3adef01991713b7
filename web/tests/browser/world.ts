/** A browser, and the page as the service serves it: over an API whose answers are recorded ones, or over the real one. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Browser, BrowserContextOptions, Page, Route } from "playwright-core";
import { chromium } from "playwright-core";
import type { Me, Right, Scope } from "../../src/api/shapes";

const require = createRequire(import.meta.url);
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
export const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
];

/** Where the service serves the page, with a slash at the end. */
export const BASE: string = process.env.BASE ?? "http://127.0.0.1:8080/ui/";

// biome-ignore lint/suspicious/noExplicitAny: recorded JSON
export const RECORDED: Record<string, any> = JSON.parse(
  readFileSync(new URL("../fixtures/acme.json", import.meta.url), "utf8"),
);

/** Somebody on his own machine, where the service tells nobody apart. */
export const ANYBODY: Me = {
  user: "api",
  kind: "anonymous",
  groups: [],
  tenants: [{ tenant_name: "acme", rights: ["read", "export", "tag", "run", "close", "admin"], scope: null, role: "" }],
};

/** Somebody who signed in at a proxy, and what a role allows them. */
export function reader(rights: Right[], scope: Scope | null = null, more: Partial<Me> = {}): Me {
  const tenants = [{ tenant_name: "acme", rights, scope, role: "roles[2]" }];
  return { user: "alice@example.com", kind: "proxy", groups: ["team-payments"], tenants, ...more };
}

/** The answers to a reader; to one who sees a part of the bill, days are not compared with it. */
export function as(me: Me): Answers {
  const scoped = me.tenants.some((each) => each.scope !== null);
  const costs = (route: Route) => route.fulfill({ json: { ...RECORDED.costs, days: null } });
  return { me: (route) => route.fulfill({ json: me }), ...(scoped ? { costs } : {}) };
}

const ANSWERS: readonly [RegExp, string][] = [
  [/\/me$/, "me"],
  [/\/tenants$/, "tenants"],
  [/\/tenants\/acme$/, "tenant"],
  [/\/pipeline\/status$/, "status"],
  [/\/cost-categories$/, "categories"],
  [/\/cost-categories\/[^/]+\/coverage$/, "category_coverage"],
  [/\/cost-categories\/[^/]+\/resolve$/, "category_resolve"],
  [/\/cost-categories\/[^/]+\/history$/, "category_history"],
  [/\/cost-categories\/[^/]+$/, "category"],
  [/\/costs$/, "costs"],
  [/\/chargebacks$/, "rows"],
  [/\/chargebacks\/aggregate$/, "aggregate"],
  [/\/chargebacks\/explain$/, "explain"],
  [/\/topic-attributions$/, "topic_rows"],
  [/\/topic-attributions\/explain$/, "topic_explain"],
  [/\/chargebacks\/changes$/, "changes"],
  [/\/policies$/, "policies"],
  [/\/budgets$/, "budgets"],
  [/\/contracts$/, "contracts"],
  [/\/anomalies$/, "anomalies"],
  [/\/notifications$/, "notifications"],
  [/\/chargebacks\/diff$/, "difference"],
  [/\/days\/[^/]+\/revisions$/, "revisions"],
  [/\/billing$/, "billing"],
  [/\/topics$/, "topics"],
  [/\/flow$/, "flow"],
  [/\/unit-costs$/, "unit_costs"],
  [/\/findings$/, "findings"],
  [/\/graph\/diff$/, "graph"],
  [/\/acme\/health$/, "health"],
  [/\/reconciliation$/, "reconciliation"],
  [/\/statements$/, "statements"],
  [/\/statement$/, "statement"],
  [/\/runs$/, "runs"],
  [/\/views$/, "views"],
  [/\/entities\/.*\/tags$/, "entity_tags"],
  [/\/tags$/, "tags"],
  [/\/search$/, "search"],
  [/\/identities$/, "identities"],
];

let browser: Browser | undefined;

export async function close(): Promise<void> {
  await browser?.close();
  browser = undefined;
}

export type Answers = Record<string, (route: Route) => unknown>;

export interface World {
  page: Page;
  /** Everything that went wrong without being asked: errors, refused code, requests to other hosts. */
  complaints: string[];
  /** The API's addresses that were asked, without the host. */
  asked: string[];
  open: (path: string) => Promise<void>;
  close: () => Promise<void>;
}

const pathOf = (url: URL) => url.pathname + url.search;

export const ETAG = '"3-0123456789abcdef"';

/** The answers of a tenant that has the cost category `cost_center`; recorded without, it has none. */
export const WITH_CATEGORY: Answers = {
  categories: (route) => route.fulfill({ json: RECORDED.category_list }),
  category: (route) => {
    if (route.request().method() === "PUT") return route.fulfill({ json: RECORDED.category_dry_run });
    return route.fulfill({ json: RECORDED.category, headers: { ETag: ETAG } });
  },
  aggregate: (route) =>
    route.fulfill({ json: route.request().url().includes("category:") ? RECORDED.category_sums : RECORDED.aggregate }),
  costs: (route) => {
    const { costs, category_breakdown: found } = RECORDED;
    const by = new URL(route.request().url()).searchParams.getAll("by");
    const wanted = by.filter((each) => each.startsWith("category:")).map((each) => ({ ...found, by: each }));
    return route.fulfill({ json: { ...costs, breakdowns: [...wanted, ...costs.breakdowns] } });
  },
};

/** A fresh window over recorded answers. `answers` take the place of recorded ones, by their name. */
export async function world(options: BrowserContextOptions = {}, answers: Answers = {}): Promise<World> {
  const found = await real(options);
  await found.page.route("**/api/v1/**", (route) => {
    const url = new URL(route.request().url());
    const name = ANSWERS.find(([pattern]) => pattern.test(url.pathname))?.[1];
    if (name && answers[name]) return answers[name](route);
    if (name === "me") return route.fulfill({ json: ANYBODY });
    return name ? route.fulfill({ json: RECORDED[name] }) : problem(route, 404, "There is no such thing");
  });
  return found;
}

/** A fresh window over the service itself; `base` is where its page is. */
export async function real(options: BrowserContextOptions = {}, base = BASE): Promise<World> {
  browser ??= await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS });
  const context = await browser.newContext({
    viewport: { width: 1440, height: 900 },
    reducedMotion: "reduce",
    ...options,
  });
  const page = await context.newPage();
  const complaints: string[] = [];
  const asked: string[] = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type()) && !/status of \d+|ERR_/.test(message.text()))
      complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (url.origin !== new URL(base).origin) complaints.push(`asks ${url}`);
    if (url.pathname.includes("/api/v1/")) asked.push(pathOf(url));
  });
  await page.addInitScript(() => {
    addEventListener("securitypolicyviolation", (event) => console.error(`refused: ${event.violatedDirective}`));
  });
  const open = async (path: string) => {
    await page.goto(base + path);
    await settled(page);
  };
  return { page, complaints, asked, open, close: () => context.close() };
}

/** A fresh window at a page of the service. */
export async function visit(path: string): Promise<World> {
  const found = await real();
  await found.open(path);
  return found;
}

/** Close a window in which nothing went wrong. */
export async function leave({ complaints, close: end }: World): Promise<void> {
  assert.deepEqual(complaints, []);
  await end();
}

/** Wait until the page has asked a question of the service: a page shows its frame before it asks. */
export async function hasAsked({ page, asked }: Pick<World, "page" | "asked">, is: (question: string) => boolean) {
  if (asked.some(is)) return;
  await page.waitForRequest((request) => is(pathOf(new URL(request.url()))));
}

/** Wait until everything on the page is the answer to its present address. */
export async function settled(page: Page): Promise<void> {
  await page.waitForFunction(
    () => document.querySelector("main h1") && !document.querySelector("[aria-busy=true], .bone"),
  );
}

export function problem(route: Route, status: number, title: string, detail = "Because of this test."): Promise<void> {
  return route.fulfill({
    status,
    contentType: "application/problem+json",
    json: { type: "about:blank", title, status, detail },
  });
}

/** What axe finds, best-practice rules included, one line each. To measure each text against what is behind it takes two
 * thirds of its time: `contrast` asks for that alone, `structure` for all the rest. Contrast is measured once nothing
 * loads and nothing moves: what is dimmed until the next answer comes has less of it. */
export async function findings(page: Page, what: "all" | "structure" | "contrast" = "structure"): Promise<string[]> {
  if (!(await page.evaluate("'axe' in globalThis"))) await page.evaluate(AXE);
  if (what !== "structure")
    await page.waitForFunction(
      () =>
        !document.querySelector("[aria-busy=true]") &&
        document.getAnimations().every((each) => each.effect?.getComputedTiming().endTime === Infinity),
    );
  return page.evaluate(async (asked) => {
    const only = asked === "contrast" ? { runOnly: ["color-contrast"] } : {};
    const rules = asked === "structure" ? { rules: { "color-contrast": { enabled: false } } } : {};
    // @ts-expect-error: axe came as a text
    const { violations } = await globalThis.axe.run(document, { resultTypes: ["violations"], ...only, ...rules });
    return violations.flatMap((each: { id: string; nodes: { html: string }[] }) =>
      each.nodes.map((node) => `${each.id}: ${node.html.slice(0, 200)}`),
    );
  }, what);
}

/** By how many pixels the page is wider than its window. */
export function overflow(page: Page): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
}
