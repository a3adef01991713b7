/**
 * How long the costs page takes to its first and to its last chart, from the address to the pixels, and what it loads:
 * `node tests/browser/timing.ts`.
 *
 * BASE is where the page is, PATHS a list of addresses below it as JSON. Each is opened twice: by a browser that has
 * never seen the page, and, at the next address, by one that has kept its files. With SLOW, on a phone far away. Prints
 * one line of JSON per opening.
 */
import type { Page } from "playwright-core";
import { close, farAway, real, type World } from "./world.ts";

interface Opening {
  path: string;
  cold: boolean;
  /** Milliseconds from the start of the navigation until the first chart is on the screen, and until the last one is. */
  first: number;
  drawn: number;
  /** How many requests were sent until the first chart was there, and the bytes of all answers until the last. */
  requests: number;
  bytes: number;
  /** The page's question about costs, without the host. */
  question: string;
}

/** Count what comes over the wire, and slow it down if that is wanted. */
async function wire(page: Page): Promise<{ bytes: number }> {
  const browser = await page.context().newCDPSession(page);
  const counted = { bytes: 0 };
  browser.on("Network.loadingFinished", ({ encodedDataLength }) => {
    counted.bytes += encodedDataLength;
  });
  await browser.send("Network.enable");
  if (process.env.SLOW) await farAway(browser);
  return counted;
}

async function open({ page, asked }: World, counted: { bytes: number }, path: string, cold: boolean): Promise<Opening> {
  counted.bytes = 0;
  await page.goto((process.env.BASE ?? "") + path);
  await page.waitForFunction(() => document.documentElement.dataset.drawn, null, { timeout: 60_000 });
  const seen = await page.evaluate(() => {
    const { first, drawn } = document.documentElement.dataset;
    const started = performance.getEntriesByType("resource").map((each) => each.startTime);
    return { first: Number(first), drawn: Number(drawn), started };
  });
  const question = asked.findLast((each) => each.includes("/costs?")) ?? "";
  const { first, drawn, started } = seen;
  // The address of the page is a request, too.
  const requests = 1 + started.filter((each) => each < first).length;
  return { path, cold, first, drawn, requests, bytes: counted.bytes, question };
}

/** Notes in the page when its first and last chart stand, and no figure is one of before. */
function watch(): void {
  // What was rendered in one frame is on the screen when the next one begins.
  const note = (name: "first" | "drawn") =>
    requestAnimationFrame(() => {
      document.documentElement.dataset[name] = String(performance.now());
    });
  const look = (isFirst: boolean) => {
    const isThere = document.querySelector(".overtime svg path") !== null;
    if (isFirst && isThere) note("first");
    const all = isThere && document.querySelector(".months [data-day]") && !document.querySelector("[aria-busy=true]");
    if (all) note("drawn");
    else requestAnimationFrame(() => look(isFirst && !isThere));
  };
  addEventListener("DOMContentLoaded", () => look(true));
}

const paths: string[] = JSON.parse(process.env.PATHS ?? "[]");
for (let n = 0; n + 1 < paths.length; n += 2) {
  const found = await real();
  await found.page.addInitScript(watch);
  const counted = await wire(found.page);
  for (const [place, cold] of [
    [n, true],
    [n + 1, false],
  ] as const)
    console.log(JSON.stringify(await open(found, counted, paths[place] ?? "", cold)));
  if (found.complaints.length) throw new Error(found.complaints.join("; "));
  await found.close();
}
await close();
