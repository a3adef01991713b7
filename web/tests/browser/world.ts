/** A browser, and the page as the service serves it: over an API whose answers are recorded ones, or over the real one. */
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Browser, BrowserContextOptions, Page, Route } from "playwright-core";
import { chromium } from "playwright-core";

const require = createRequire(import.meta.url);
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"];

/** Where the service serves the page, with a slash at the end. */
export const BASE: string = process.env.BASE ?? "http://127.0.0.1:8080/ui/";

// biome-ignore lint/suspicious/noExplicitAny: recorded JSON
export const RECORDED: Record<string, any> = JSON.parse(
  readFileSync(new URL("../fixtures/acme.json", import.meta.url), "utf8"),
);

const ANSWERS: readonly [RegExp, string][] = [
  [/\/tenants$/, "tenants"],
  [/\/tenants\/acme$/, "tenant"],
  [/\/pipeline\/status$/, "status"],
  [/\/costs$/, "costs"],
  [/\/chargebacks$/, "rows"],
  [/\/chargebacks\/aggregate$/, "aggregate"],
  [/\/billing$/, "billing"],
  [/\/topics$/, "topics"],
  [/\/flow$/, "flow"],
  [/\/reconciliation$/, "reconciliation"],
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

/** A fresh window over recorded answers. `answers` take the place of recorded ones, by their name. */
export async function world(options: BrowserContextOptions = {}, answers: Answers = {}): Promise<World> {
  const found = await real(options);
  await found.page.route("**/api/v1/**", (route) => {
    const url = new URL(route.request().url());
    const name = ANSWERS.find(([pattern]) => pattern.test(url.pathname))?.[1];
    if (name && answers[name]) return answers[name](route);
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
    if (url.pathname.includes("/api/v1/")) asked.push(url.pathname + url.search);
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

/** What axe finds, best-practice rules included, one line each; `only` is the one rule to look at. */
export async function findings(page: Page, only?: string): Promise<string[]> {
  await page.evaluate(AXE);
  return page.evaluate(async (rule) => {
    const options = { resultTypes: ["violations"], ...(rule ? { runOnly: [rule] } : {}) };
    // @ts-expect-error: axe came as a text
    const { violations } = await globalThis.axe.run(document, options);
    return violations.flatMap((each: { id: string; nodes: { html: string }[] }) =>
      each.nodes.map((node) => `${each.id}: ${node.html.slice(0, 200)}`),
    );
  }, only);
}

/** By how many pixels the page is wider than its window. */
export function overflow(page: Page): Promise<number> {
  return page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
}
