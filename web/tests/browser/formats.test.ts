/** Numbers, days, currencies and the language as a reader chooses them, on every page. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { PAGES } from "./addresses.ts";
import { acme } from "./fake.ts";
import { pictures } from "./picture.ts";
import { close, findings, leave, over, overflow, settled, type World } from "./world.ts";

const GERMAN = { Numbers: "1.234,56", Days: "14.11.2026", Currency: "after" };
/** An amount, and a day, in the formats that nobody chose. */
const ENGLISH =
  /\d,\d{3}(?!\d)|\d\.(?:\d{1,2}|\d{4,})(?!\d)|[$€]\d|USD [−\d]|\d (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)|\d{4}-\d\d-\d\d/;
/** What stays as it is: sentences that the service has written, and ids. */
const OF_THE_SERVICE = /was charged .* the usual|has its part of|line \d{4}/;
const CHOSEN_DAY = /\d\d\.\d\d\.(?:\d{4})?/g;

after(close);

/** A window at the costs, after a reader has chosen. */
async function written(choices: Record<string, string>): Promise<World> {
  const found = await over(acme());
  await found.open("acme/costs?period=7d");
  const dialog = await appearance(found.page);
  for (const [name, value] of Object.entries(choices)) await dialog.getByLabel(name).selectOption(value);
  await load(found.page);
  return found;
}

async function appearance(page: Page, name = "Appearance") {
  await page.getByRole("button", { name: new RegExp(`^${name},`) }).click();
  return page.getByRole("dialog", { name });
}

async function load(page: Page, name = "Load the page with these"): Promise<void> {
  const button = page.getByRole("button", { name });
  await Promise.all([page.waitForEvent("load"), button.click()]);
  await settled(page);
}

/** What a reader sees, hears or points at and that is written in other formats. */
async function english(page: Page): Promise<string[]> {
  const texts = await page.evaluate(() => {
    const found: (string | null)[] = [];
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
    for (let node = walk.nextNode(); node; node = walk.nextNode())
      if (node instanceof Element)
        for (const name of ["title", "aria-label", "aria-valuetext"]) found.push(node.getAttribute(name));
      else if (!node.parentElement?.closest("noscript, option")) found.push(node.textContent);
    return found.filter((each) => each !== null);
  });
  assert.ok(texts.length > 20);
  return texts.filter((each) => ENGLISH.test(each.replace(CHOSEN_DAY, "")) && !OF_THE_SERVICE.test(each));
}

test("points, commas, days of digits and the currency behind are on every page, which is no wider for them", async () => {
  const found = await written(GERMAN);
  const { page } = found;
  for (const [name, path] of Object.entries(PAGES)) {
    await page.setViewportSize({ width: 1440, height: 900 });
    await found.go(path);
    assert.deepEqual(await english(page), [], name);
    await page.setViewportSize({ width: 360, height: 900 });
    assert.equal(await overflow(page), 0, name);
    if (["costs", "bill", "statement"].includes(name)) {
      assert.deepEqual(await findings(page), []);
      await pictures(page, `formats-${name}`);
    }
  }
  await leave(found);
});

test("costs, their chart, the bill and a statement are written as they were chosen", async () => {
  const found = await written(GERMAN);
  const { page } = found;
  assert.match(await page.locator(".lead").innerText(), /^[\d.]+,\d\d\u00a0\$$/);
  assert.match((await page.locator(".chart text").nth(1).textContent()) ?? "", /^[\d,]+K?\u00a0\$$/);
  await page.getByLabel("Read the chart day by day").focus();
  await page.keyboard.press("ArrowLeft");
  assert.match(await page.locator(".chart .tip").innerText(), /^Sun, 15\.11\.2026.*\d,\d\d\u00a0\$/s);
  assert.match(
    (await page.getByLabel("Read the chart day by day").getAttribute("aria-valuetext")) ?? "",
    /15\.11\.2026/,
  );
  await found.go(PAGES.bill ?? "");
  assert.match(await page.getByRole("region", { name: "The bill" }).innerText(), /November 2026.*\d\.\d{3},\d\d/s);
  await found.go(PAGES.statement ?? "");
  assert.match(await page.locator(".statement-total").innerText(), /^[\d.]+,\d\d\u00a0\$/);
  await page.getByText("17.11.2026").first().waitFor();
  await found.go(PAGES.rows ?? "");
  await page
    .getByRole("button", { name: /why this amount/ })
    .nth(2)
    .click();
  await page.getByRole("dialog").locator(".steps > li").first().waitFor();
  assert.deepEqual(await english(page), []);
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  await found.go(PAGES.days ?? "");
  await page
    .getByRole("button", { name: /^Revision/ })
    .first()
    .click();
  await page.getByRole("dialog").locator(".steps > li").first().waitFor();
  assert.deepEqual(await english(page), []);
  await leave(found);
});

test("days by ISO 8601 and spaces between thousands; what is usual is what was never chosen", async () => {
  const found = await written({ Numbers: "1 234,56", Days: "2026-11-14", Currency: "before" });
  const { page } = found;
  assert.match(await page.locator(".lead").innerText(), /^\$[\d\u202f]+,\d\d$/);
  await page.getByText("2026-11-10 – 2026-11-16").first().waitFor();
  const dialog = await appearance(page);
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    assert.deepEqual(await findings(page, "all"), []);
  }
  await pictures(page, "formats-menu");
  for (const name of Object.keys(GERMAN)) await dialog.getByLabel(name).selectOption({ index: 0 });
  await load(page);
  assert.match(await page.locator(".lead").innerText(), /^\$[\d,]+\.\d\d$/);
  assert.equal(await page.evaluate(() => localStorage.length), 0);
  await leave(found);
});

test("in German, numbers and days are German, too, unless others were chosen; no page is wider for it", async () => {
  const found = await written({ Language: "Deutsch", Numbers: "1 234,56" });
  const { page } = found;
  const language = () => page.evaluate(() => document.documentElement.lang);
  assert.equal(await language(), "de");
  assert.match(await page.locator("main h1").innerText(), /^Kosten/);
  await page.getByRole("navigation", { name: "Hauptnavigation" }).getByRole("link", { name: "Erkunden" }).waitFor();
  assert.match(await page.locator(".lead").innerText(), /^[\d\u202f]+,\d\d\u00a0\$$/);
  await page.getByText("10.11. – 16.11.2026").first().waitFor();
  const dialog = await appearance(page, "Darstellung");
  assert.deepEqual(await findings(page, "all"), []);
  assert.deepEqual(await dialog.getByLabel("Datum").locator("option").allTextContents(), [
    "14. November 2026",
    "14.11.2026",
    "2026-11-14",
  ]);
  await dialog.getByLabel("Zahlen").selectOption("1.234,56");
  await load(page, "Seite damit neu laden");
  assert.deepEqual(await page.evaluate(() => Object.entries(localStorage)), [["chargeback.language", "de"]]);
  await page.setViewportSize({ width: 360, height: 900 });
  for (const [name, path] of Object.entries(PAGES)) {
    await found.go(path);
    assert.equal(await overflow(page), 0, name);
  }
  await page.setViewportSize({ width: 1440, height: 900 });
  await (await appearance(page, "Darstellung")).getByLabel("Sprache").selectOption("English");
  await load(page, "Seite damit neu laden");
  assert.equal(await language(), "en");
  assert.equal(await page.evaluate(() => localStorage.length), 0);
  await leave(found);
});
