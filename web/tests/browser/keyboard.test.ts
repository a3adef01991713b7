/** The whole page by keys alone, over the real service: no test here touches the mouse. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { close, leave, settled, visit } from "./world.ts";

const PERIOD = "period=5d";
const MOST_STOPS = 600;
const FIRST = "BUTTON Skip to the content";
/** Of a long table, a quick browser draws the next rows before the focus is there; so one day of it is walked through. */
const PERIODS: Readonly<Record<string, string>> = { rows: "period=1d" };
const PAGES = [
  "costs",
  "bill",
  "topics",
  "units",
  "findings",
  "map",
  "rows",
  "unowned",
  "days",
  "categories",
  "tags",
  "views",
];

after(close);

interface Stop {
  name: string;
  visible: boolean;
  ringed: boolean;
}

/** Where the focus is: what it is called, whether it can be seen, and whether something marks it. Null: nowhere. */
function stop(page: Page): Promise<Stop | null> {
  return page.evaluate(() => {
    const element = document.activeElement;
    if (!element || element === document.body) return null;
    const box = element.getBoundingClientRect();
    const marked = (of: Element) => {
      const style = getComputedStyle(of);
      return (style.outlineStyle !== "none" && Number.parseFloat(style.outlineWidth) > 0) || style.boxShadow !== "none";
    };
    const near = [element, element.nextElementSibling, element.parentElement].filter((each) => each !== null);
    const label = element instanceof HTMLInputElement ? element.labels?.[0] : null;
    const name = element.getAttribute("aria-label") ?? (label ?? element).textContent?.trim();
    return {
      name: `${element.tagName} ${name?.slice(0, 200)}`,
      visible: box.width > 0 && box.height > 0,
      ringed: near.some(marked),
    };
  });
}

/** Press Tab until something holds. */
async function tabTo(page: Page, holds: (name: string) => boolean): Promise<void> {
  for (let n = 0; n < MOST_STOPS; n++) {
    await page.keyboard.press("Tab");
    const found = await stop(page);
    if (found && holds(found.name)) return;
  }
  assert.fail("no such stop");
}

for (const name of PAGES)
  test(`Tab walks through ${name} from its beginning to its end, and every stop can be seen`, async () => {
    const found = await visit(`acme/${name}?${PERIODS[name] ?? PERIOD}`);
    const seen: Stop[] = [];
    for (let n = 0; n < MOST_STOPS; n++) {
      await found.page.keyboard.press("Tab");
      const next = await stop(found.page);
      // After the last stop the browser has the focus, or is done with it already and begins again.
      if (next === null || (seen.length > 0 && next.name === FIRST)) break;
      seen.push(next);
    }
    const last = seen.slice(-3).map((each) => each.name);
    assert.ok(seen.length > 12 && seen.length < MOST_STOPS, `${seen.length} stops, the last of them ${last}`);
    assert.deepEqual(
      seen.filter((each) => !each.visible || !each.ringed),
      [],
    );
    assert.equal(seen[0]?.name, FIRST);
    await leave(found);
  });

test("a reader goes through all pages, narrows, looks, finds and comes back", async () => {
  const found = await visit(`acme/costs?${PERIOD}`);
  const { page } = found;
  const press = async (...keys: string[]) => {
    for (const key of keys) await page.keyboard.press(key);
  };
  const heading = (name: string) => page.getByRole("heading", { name, level: 1 }).waitFor({ state: "attached" });
  const query = () => new URL(page.url()).searchParams;
  const focused = (label: string) =>
    page.waitForFunction((text) => document.activeElement?.getAttribute("aria-label") === text, label);

  for (const [key, title] of Object.entries({
    b: "Months",
    s: "Statements",
    t: "Topics",
    m: "Map",
    r: "Rows",
    i: "Findings",
    u: "Unowned",
    d: "Days",
    o: "Cost categories",
    a: "Tags",
    v: "Views",
    c: "Costs",
  })) {
    await press("g", key);
    await heading(`${title} of acme`);
    await settled(page);
    assert.equal(query().get("period"), "5d", `the period stays on ${title}`);
  }

  await press("f");
  await focused("What to filter by");
  await page.keyboard.type("product");
  await press("Enter");
  await focused("Product is");
  await page.getByRole("option").first().waitFor();
  const product = (await page.getByRole("option").first().locator(".cut").first().textContent()) ?? "";
  await press("Enter");
  await page.getByText(`Product is ${product}`, { exact: true }).waitFor();
  await settled(page);

  await press("t");
  await page.getByRole("region", { name: "Costs of each day" }).waitFor();
  await press("t");
  const chart = page.getByRole("slider", { name: "Read the chart day by day" });
  await chart.waitFor();
  await tabTo(page, (name) => name.startsWith("INPUT Read the chart"));
  await press("End");
  const last = (await chart.getAttribute("aria-valuetext")) ?? "";
  assert.match(last, /^\w+, \d+ \w+ 2026: \$[\d,.]+\. /);
  await press("Home", "Enter");
  await page.waitForURL(/start_date=/);
  const day = query().get("start_date");
  assert.equal(query().get("end_date"), day);
  await settled(page);
  await press("]");
  await page.waitForURL((url) => url.searchParams.get("start_date") !== day);

  await press("p");
  await page.waitForFunction(() => document.activeElement?.textContent === "Last 7 days");
  await press("Enter");
  await page.waitForURL(/period=7d/);
  await settled(page);
  await tabTo(page, (name) => name.startsWith("A Remove:"));
  await press("Enter");
  await page.waitForURL((url) => !url.searchParams.has("product_type"));

  await press("g", "r");
  await heading("Rows of acme");
  await settled(page);
  await tabTo(page, (name) => name.includes("why this amount?"));
  await press("Enter");
  await page.getByRole("dialog", { name: "Why this amount?" }).waitFor();
  await press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  assert.match((await stop(page))?.name ?? "", /why this amount\?/);

  await press("/");
  await focused("Find anything");
  await page.keyboard.type("prod");
  await page.getByRole("option").nth(1).waitFor();
  await press("ArrowDown", "Enter");
  await heading("Detail of acme");
  await settled(page);

  await press("?");
  await page.getByRole("dialog", { name: "Help" }).waitFor();
  await press("Escape");
  await leave(found);
});

test("a view is saved, opened and removed by keys", async () => {
  const found = await visit(`acme/costs?period=5d&product_type=KAFKA_STORAGE`);
  const { page } = found;
  await tabTo(page, (name) => name === "BUTTON Save view");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.activeElement?.matches("[role=dialog] input[name=name]"));
  await page.keyboard.type("By keys");
  await page.keyboard.press("Tab");
  await page.keyboard.type("alice");
  await page.keyboard.press("Enter");
  await page.getByText("Saved.").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  assert.equal((await stop(page))?.name, "BUTTON Save view");
  await page.keyboard.press("g");
  await page.keyboard.press("v");
  await page.getByRole("link", { name: "By keys" }).waitFor();
  await tabTo(page, (name) => name === "A By keys");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Costs of acme" }).waitFor({ state: "attached" });
  assert.equal(new URL(page.url()).search, "?period=5d&product_type=KAFKA_STORAGE");
  await page.goBack();
  await page.getByRole("link", { name: "By keys" }).waitFor();
  await tabTo(page, (name) => name.endsWith("the view By keys"));
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Really remove? the view By keys" }).waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: "By keys" }).waitFor({ state: "detached" });
  await leave(found);
});
