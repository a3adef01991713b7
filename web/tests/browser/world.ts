/** A browser, and the page as the service serves it: over a fake service, or over the real one. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Browser, BrowserContext, BrowserContextOptions, CDPSession, Page, Route } from "playwright-core";
import { chromium } from "playwright-core";
import type { Path } from "../../src/api/address";
import type { Me, Right, Scope } from "../../src/api/shapes";
import { type Organisation, organisation } from "./fake.ts";
import { type FakeServer, fakeServer } from "./fakeserver.ts";

const require = createRequire(import.meta.url);
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
export const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
];

/** The fake service, where there is no real one; `FILES` is where the page is served. */
const fake: FakeServer | null = process.env.FILES ? await fakeServer(process.env.FILES) : null;
/** Where the page is, with a slash at the end. */
export const BASE: string = fake?.base ?? process.env.BASE ?? "http://127.0.0.1:8080/ui/";

/** Somebody who signed in at a proxy, and what a role allows them. */
export function reader(rights: Right[], scope: Scope | null = null, more: Partial<Me> = {}): Me {
  const tenants = [{ tenant_name: "acme", rights, scope, role: "roles[2]" }];
  return { user: "alice@example.com", kind: "proxy", groups: ["team-payments"], tenants, ...more };
}

let browser: Browser | undefined;
/** Windows share what a browser keeps of the page's files, which makes them open in two thirds of the time. */
let shared: BrowserContext | undefined;

export async function close(): Promise<void> {
  await browser?.close();
  browser = undefined;
  shared = undefined;
  fake?.close();
}

/** What is answered in place of the fake service, by the path of the API. */
export type Answers = { readonly [P in Path | "/me" | "/tenants"]?: (route: Route, url: URL) => unknown };

export interface World {
  page: Page;
  /** Everything that went wrong without being asked: errors, refused code, requests to other hosts. */
  complaints: string[];
  /** The API's addresses that were asked, without the host. */
  asked: string[];
  open: (path: string) => Promise<void>;
  /** Follow a link to an address: the page stays loaded, and so does axe. */
  go: (path: string) => Promise<void>;
  close: () => Promise<void>;
}

const pathOf = (url: URL) => url.pathname + url.search;

/** A fresh window over the fake service of an organisation; `answers` take the place of its own, where they fulfil. */
export async function over(
  of: Organisation = organisation(),
  answers: Answers = {},
  options?: BrowserContextOptions,
): Promise<World> {
  fake?.serve(of);
  const found = await real(options);
  for (const [path, answer] of Object.entries(answers)) {
    const below =
      path === "/me" || path === "/tenants" ? path : `/tenants/[^/]+${path.replaceAll(/\{\w+\}/g, "[^/]+")}`;
    const pattern = new RegExp(`/api/v1${below}(?:\\?.*)?$`);
    await found.page.route(pattern, (route) => answer(route, new URL(route.request().url())));
  }
  return found;
}

/** From now on, the fake service is that of another organisation: what changes while a page is open. */
export function become(of: Organisation): void {
  fake?.serve(of);
}

/** A fresh window over the service itself; `base` is where its page is. With options, even none, it is a browser of its
 * own: for tests that set its clock, cut its network, or open several windows. */
export async function real(options?: BrowserContextOptions, base = BASE): Promise<World> {
  browser ??= await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS });
  const usual = { viewport: { width: 1440, height: 900 }, reducedMotion: "reduce" } as const;
  const own = options && (await browser.newContext({ ...usual, ...options }));
  shared ??= own ? undefined : await browser.newContext(usual);
  const context = own ?? shared;
  assert.ok(context);
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
    // Nothing is known of a reader who was here before in another window.
    if (!location.protocol.startsWith("http") || sessionStorage.getItem("began")) return;
    localStorage.clear();
    sessionStorage.setItem("began", "here");
  });
  const open = async (path: string) => {
    await page.goto(base + path);
    await settled(page);
  };
  const go = async (path: string) => {
    await page.evaluate((to) => {
      const link = Object.assign(document.createElement("a"), { href: to });
      document.body.append(link);
      link.click();
      link.remove();
    }, base + path);
    await settled(page);
  };
  const close = async () => {
    // What the page still asks when a test has ended is nobody's answer any more.
    await page.unrouteAll({ behavior: "ignoreErrors" });
    await (own ?? page).close();
  };
  return { page, complaints, asked, open, go, close };
}

/** A fresh window at a page of the service. */
export async function visit(path: string): Promise<World> {
  const found = await real();
  await found.open(path);
  return found;
}

/** Close a window in which nothing went wrong. */
export async function leave({ complaints, close: end }: Pick<World, "complaints" | "close">): Promise<void> {
  assert.deepEqual(complaints, []);
  await end();
}

/** Close a window in which nothing went wrong, at every width; nothing is pointed at. */
export async function leaveAtEveryWidth(found: Pick<World, "page" | "complaints" | "close">): Promise<void> {
  const { page } = found;
  await page.mouse.move(0, 0);
  for (const width of [1440, 360, 320]) {
    await page.setViewportSize({ width, height: 900 });
    assert.equal(await overflow(page), 0, `${width} px`);
    assert.deepEqual(await findings(page), [], `${width} px`);
  }
  await leave(found);
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

/** 400 ms until an answer begins, 1.6 Mbit/s, and a quarter of this machine's speed. */
export async function farAway(browser: CDPSession): Promise<void> {
  const network = { offline: false, latency: 400, downloadThroughput: 200_000, uploadThroughput: 200_000 };
  await browser.send("Network.emulateNetworkConditions", network);
  await browser.send("Emulation.setCPUThrottlingRate", { rate: 4 });
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
