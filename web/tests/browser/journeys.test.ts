/** What readers do on the page, step by step: each is an address, a question to the service, and a way back. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Aggregate, BillLine, Difference, Page, Statement, Statements } from "../../src/api/shapes";
import { acme } from "./fake.ts";
import { ask, costsOf, exact } from "./service.ts";
import { BASE, close, leave as end, findings, hasAsked, over, problem, type World } from "./world.ts";

const TENANT = "tenants/acme";

after(close);

async function visit(path: string): Promise<World> {
  const found = await over(acme());
  await found.open(path);
  return { ...found, close: () => end(found) };
}

const query = (url: string) => new URL(url).search;

test("the figures are the API's, to the last digit", async () => {
  const { page, close: leave } = await visit("acme/costs?period=7d");
  const costs = await costsOf("acme", "period=7d&by=category:cost_center");
  assert.equal(await page.locator(".lead").getAttribute("title"), exact(costs.total.amount));
  const list = page.locator(".overtime .ranked .amount");
  for (const [n, item] of costs.breakdowns[0]?.items.entries() ?? [])
    assert.equal(await list.nth(n).getAttribute("title"), exact(item.amount));
  await page.getByRole("link", { name: "Show as a table" }).click();
  const cells = page.locator(".overtime tbody tr td:nth-child(2) .num");
  const titles = await cells.evaluateAll((all) => all.map((each) => each.getAttribute("title")));
  assert.deepEqual(
    titles,
    [...costs.amounts, costs.total.amount].map((each) => exact(each)),
  );
  await leave();
});

test("the bill adds up to the service's total and to the provider's bill, and is a file by its address", async () => {
  const found = await visit("acme/bill?period=7d");
  const { page, close: leave } = found;
  const wanted = "?start_date=2026-11-01&end_date=2026-11-30&group_by=tag:team&time_bucket=month&names=true";
  await hasAsked(found, (each) => each.endsWith(`/chargebacks/aggregate${wanted}`));
  const { buckets, total_amount } = await ask<Aggregate>(`${TENANT}/chargebacks/aggregate${wanted}`);
  const titles = (row: string) =>
    page.locator(`.bill ${row} .decimals`).evaluateAll((all) => all.map((each) => each.getAttribute("title")));
  assert.deepEqual(await titles("tfoot tr"), [exact(total_amount)]);
  assert.deepEqual(new Set(await titles("tbody tr")), new Set(buckets.map((each) => exact(each.total_amount))));
  await page.getByText("Equal to the provider’s bill, to the last digit").waitFor();
  const file = await page.getByRole("link", { name: "CSV", exact: true }).getAttribute("href");
  assert.ok(file?.endsWith(`/chargebacks/aggregate.csv${wanted}`));
  const parts = page.waitForRequest(/aggregate\?.*group_by=tag:team&group_by=product_type/);
  await page.getByRole("link", { name: "With products" }).click();
  await parts;
  await page.keyboard.press("[");
  assert.equal(query(page.url()), "?start_date=2026-10-01&end_date=2026-10-31&parts=1");
  await leave();
});

test("a bill that is not asked for of some days is that of the last whole month", async () => {
  const { page, asked, close: leave } = await visit("acme/bill");
  await hasAsked({ page, asked }, (each) =>
    each.includes("/chargebacks/aggregate?start_date=2026-10-01&end_date=2026-10-31&"),
  );
  await page.locator(".when button").first().click();
  await page.getByRole("link", { name: "The last whole month", exact: true }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("navigation", { name: "Pages of Bill" }).getByRole("link", { name: "Statements" }).click();
  await hasAsked({ page, asked }, (each) => each.includes("/statements?period=2026-10&"));
  await leave();
});

test("the bill leads to statements in cents that add up, and each of these to its files", async () => {
  const { page, asked, close: leave } = await visit("acme/bill?period=2026-11&by=category:cost_center");
  await page.getByRole("navigation", { name: "Pages of Bill" }).getByRole("link", { name: "Statements" }).click();
  const list = page.getByRole("region", { name: "Statements" });
  await list.getByRole("row").first().waitFor();
  await hasAsked({ page, asked }, (each) => each.endsWith("/statements?period=2026-11&by=category:cost_center"));
  const statements = await ask<Statements>(`${TENANT}/statements?period=2026-11&by=category:cost_center`);
  const ofOne = "?period=2026-11&by=category:cost_center&value=payments";
  const statement = await ask<Statement>(`${TENANT}/statement${ofOne}`);
  const cents = async (rows: string) => (await page.locator(`${rows} .num`).allTextContents()).map(plainCents);
  const parts = await cents("tbody");
  assert.deepEqual(
    parts,
    statements.items.map((each) => each.rounded),
  );
  assert.deepEqual(await cents("tfoot"), [statements.total.rounded]);
  await page.getByText("Equal to the provider’s bill, to the last digit").waitFor();
  for (const [name, file] of [
    ["Journal as CSV", "/periods/2026-11/journal?by=category:cost_center&format=csv"],
    ["CSV", "/statements.csv?period=2026-11&by=category:cost_center"],
  ] as const) {
    const address = await page.locator("main header").getByRole("link", { name, exact: true }).getAttribute("href");
    assert.ok(address?.endsWith(file), address ?? "");
  }
  await page.getByRole("link", { name: "Payments", exact: true }).click();
  const lines = page.getByRole("region", { name: "Lines" });
  await lines.getByRole("row").first().waitFor();
  assert.equal(await lines.locator("tbody tr").count(), statement.lines.length);
  const total = lines.locator("tfoot .num");
  assert.equal(plainCents((await total.textContent()) ?? ""), statement.rounded);
  assert.match((await total.getAttribute("title")) ?? "", new RegExp(`${statement.amount}$`));
  for (const [name, form] of [
    ["Page", "html"],
    ["PDF", "pdf"],
    ["CSV", "csv"],
  ] as const) {
    const file = await page.locator("header").getByRole("link", { name, exact: true }).getAttribute("href");
    assert.ok(file?.endsWith(`/statement.${form}${ofOne}`), file ?? "");
  }
  await page.getByRole("link", { name: "All statements of November 2026" }).click();
  await list.getByRole("row").first().waitFor();
  await leave();
});

/** An amount without its currency and separators: `−3.15`. */
const plainCents = (text: string) => text.replace(/[$,]/g, "").replace("\u2212", "-");

test("a statement that is not there, and a month without costs, say so", async () => {
  const found = await over(acme(), {
    "/statement": (route) => problem(route, 404, "Not found", "There is no statement of 'payments'."),
  });
  await found.open("acme/statement?period=2026-11&by=category:cost_center&value=payments");
  await found.page.getByText("There is no statement of 'payments'.").waitFor();
  await found.go("acme/statement?period=2026-08&by=category:cost_center");
  await found.page.getByText("No costs in August 2026").waitFor();
  await end(found);
});

test("bill lines leave aside what they know nothing of, and lead to their shares", async () => {
  const { page, asked, close: leave } = await visit("acme/rows?period=7d&identity_id=sa-1");
  await page.getByRole("link", { name: "Bill lines" }).click();
  await page.getByText("Bill lines know nothing of identity").waitFor();
  const { items } = await ask<Page<BillLine>>(`${TENANT}/billing?period=7d`);
  const line_id = items.find((each) => each.resource_id === "lkc-1")?.metadata.line_id;
  const shares = page.waitForRequest(new RegExp(`/chargebacks\\?.*line_id=${line_id}`));
  await page
    .getByRole("link", { name: /prod-enterprise-1/ })
    .first()
    .click();
  await page.getByText(`Bill line is ${line_id}`, { exact: true }).waitFor();
  await hasAsked({ page, asked }, (each) => /\/billing\?/.test(each) && !each.includes("identity_id"));
  await shares;
  await leave();
});

test("filters without words of their own stay: in links, in questions, and as chips that remove them", async () => {
  const { page, asked, close: leave } = await visit("acme/costs?period=7d&cluster_id=lkc-1&not.line_id=7&shade=dark");
  await page.getByText("Costs know nothing of bill line: that filter is left aside here.").waitFor();
  const chips = await page.locator(".chip .cut").allTextContents();
  assert.deepEqual(chips, ["Cluster is prod-enterprise-1", "Bill line is not 7", "Shade is dark"]);
  await hasAsked({ page, asked }, (each) => /\/costs\?.*&cluster_id=lkc-1&shade=dark$/.test(each));
  await page.getByRole("navigation", { name: "Places" }).getByRole("link", { name: "Explore" }).click();
  await page.getByRole("navigation", { name: "Pages of Explore" }).getByRole("link", { name: "Rows" }).click();
  await page.getByRole("navigation", { name: "Kind of rows" }).waitFor();
  assert.equal(query(page.url()), "?period=7d&cluster_id=lkc-1&not.line_id=7&shade=dark");
  assert.equal(await page.getByText("know nothing of").count(), 0);
  await hasAsked({ page, asked }, (each) => /\/chargebacks\?.*&cluster_id=lkc-1&not\.line_id=7&shade=dark$/.test(each));
  for (const rest of ["?period=7d&not.line_id=7&shade=dark", "?period=7d&shade=dark", "?period=7d"]) {
    await page
      .getByRole("link", { name: /^Remove:/ })
      .first()
      .click();
    await page.waitForURL((url) => url.search === rest);
  }
  await leave();
});

test("a filter is called as the inventory calls its value, whatever was shown before", async () => {
  const { page, close: leave } = await visit("acme/bill?period=7d&by=product_type&identity_id=sa-1");
  await page.locator(".chip").getByText("Identity is Service 1", { exact: true }).waitFor();
  await leave();
});

test("the treemap is walked by arrows", async () => {
  const { page, close: leave } = await visit("acme/topics?period=7d");
  const focused = () => page.evaluate(() => (document.activeElement as HTMLElement).dataset.part);
  await page.locator(".treemap [tabindex='0']").focus();
  const first = await focused();
  await page.keyboard.press("ArrowRight");
  assert.notEqual(await focused(), first);
  await page.keyboard.press("Home");
  assert.equal(await focused(), first);
  assert.equal(await page.locator(".treemap [tabindex='0']").count(), 1);
  await leave();
});

test("the map is walked day by day", async () => {
  const { page, close: leave } = await visit("acme/map?period=7d");
  await page.getByRole("slider", { name: "Day by day" }).focus();
  await page.keyboard.press("Home");
  await page.waitForURL(/day=2026-11-10$/);
  const asked = page.waitForRequest(/\/graph\/diff\?start_date=2026-11-11&end_date=2026-11-11/);
  await page.keyboard.press("ArrowRight");
  await page.waitForURL(/day=2026-11-11$/);
  await asked;
  await page.getByRole("link", { name: "All 7 days" }).click();
  assert.equal(query(page.url()), "?period=7d");
  await leave();
});

test("the map is looked into and out of again, by keys alone", async () => {
  const { page, close: leave } = await visit("acme/map?period=7d");
  await page.getByText("The same as a table").focus();
  await page.keyboard.press("Enter");
  const cluster = page.getByRole("link", { name: /prod-dedicated-0.*look into it/ });
  const asked = page.waitForRequest(/\/graph\/diff\?.*focus=e:env-1%2Fr:lkc-0/);
  await cluster.focus();
  await page.keyboard.press("Enter");
  await asked;
  assert.equal(query(page.url()), "?period=7d&focus=e:env-1%2Fr:lkc-0");
  await page.getByRole("link", { name: "The whole organisation" }).click();
  assert.equal(query(page.url()), "?period=7d");
  await page.getByRole("navigation", { name: "Last column" }).getByRole("link", { name: "Product" }).click();
  await page.getByText("Where the money comes from").waitFor();
  await leave();
});

test("a topic’s sum leads to its rows, and a row to its explanation", async () => {
  const { page, close: leave } = await visit("acme/topics?period=7d");
  await page
    .getByRole("link", { name: /: its rows/ })
    .first()
    .click();
  await page.getByRole("navigation", { name: "Kind of rows" }).waitFor();
  assert.match(query(page.url()), /tab=topics&cluster=lkc-.*&topic=/);
  await page
    .getByRole("button", { name: /why this amount/ })
    .first()
    .click();
  const dialog = page.getByRole("dialog", { name: "Why this amount?" });
  await dialog.getByText(/^Topic .* has its part of/).waitFor();
  assert.equal(await dialog.getByRole("listitem").count(), 5);
  await leave();
});

test("why not somebody else: asked for by id, or by a press on who shares it", async () => {
  const { page, close: leave } = await visit("acme/rows?period=7d");
  await page
    .getByRole("button", { name: /why this amount/ })
    .nth(2)
    .click();
  const dialog = page.getByRole("dialog", { name: "Why this amount?" });
  const asked = page.waitForRequest(/\/explain\?.*identity_id=sa-nobody/);
  await dialog.getByRole("textbox", { name: /Why not another identity/ }).fill("sa-nobody");
  await page.keyboard.press("Enter");
  await asked;
  const another = page.waitForRequest(/\/explain\?.*identity_id=sa-6/);
  await dialog.getByRole("button", { name: "Service 6" }).click();
  await another;
  await leave();
});

test("a view is saved from every page, as its address has it", async () => {
  const { page, close: leave } = await visit("acme/topics?period=7d&product_type=KAFKA_BASE");
  let saved: unknown;
  await page.route("**/views", (route) => {
    if (route.request().method() !== "POST") return route.fallback();
    saved = route.request().postDataJSON();
    return route.fulfill({ status: 201, json: {} });
  });
  await page.getByRole("button", { name: "Save view" }).click();
  await page.getByRole("textbox", { name: "Name", exact: true }).fill("Base");
  await page.getByRole("textbox", { name: "Your name" }).fill("alice");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByText("Saved.").waitFor();
  const wanted = "period=7d&product_type=KAFKA_BASE";
  assert.deepEqual(saved, { name: "Base", page: "topics", query: wanted, created_by: "alice" });
  await leave();
});

test("every card is a file, and a chart is a table", async () => {
  const { page, close: leave } = await visit("acme/costs?period=7d");
  await page.getByRole("button", { name: "More about Product" }).click();
  const ofProduct = page.getByRole("dialog", { name: "More about Product" });
  const file = await ofProduct.getByRole("link", { name: "CSV", exact: true }).getAttribute("href");
  assert.match(file ?? "", /aggregate\.csv\?period=7d&group_by=product_type&time_bucket=day/);
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "More about Days" }).click();
  const ofDays = page.getByRole("dialog", { name: "More about Days" });
  await ofDays.getByRole("link", { name: "Show as a table" }).click();
  assert.equal(query(page.url()), "?period=7d&table=days");
  assert.equal(await page.locator("section[aria-label='Table of days'] tbody tr").count(), 7);
  await leave();
});

test("a click is a filter, the filter is the address and the question, and back undoes it", async () => {
  const { page, asked, close: leave } = await visit("acme/costs?period=7d");
  await page
    .getByRole("link", { name: /^Search / })
    .first()
    .click();
  assert.equal(query(page.url()), "?period=7d&category:cost_center=search");
  await page.getByText("Cost centre is Search", { exact: true }).waitFor();
  await hasAsked({ page, asked }, (each) => /\/costs\?.*category:cost_center=search/.test(each));
  await page.getByRole("link", { name: "Leave out Kafka CKUs" }).first().click();
  assert.equal(query(page.url()), "?period=7d&category:cost_center=search&not.product_type=KAFKA_NUM_CKUS");
  await page.goBack();
  await page.goBack();
  assert.equal(query(page.url()), "?period=7d");
  assert.equal(await page.locator(".chip").count(), 0);
  await leave();
});

test("what is presentation leaves no step to go back to", async () => {
  const { page, close: leave } = await visit("acme/costs?period=7d");
  const steps = () => page.evaluate(() => history.length);
  const before = await steps();
  await page.getByRole("navigation", { name: "Stacked by" }).getByRole("link", { name: "Product" }).click();
  assert.equal(query(page.url()), "?period=7d&by=product_type");
  assert.equal(await steps(), before);
  await leave();
});

test("a filter is added by keys alone, and Escape gives the focus back", async () => {
  const { page, close: leave } = await visit("acme/costs?period=7d");
  const picks = (name: string) =>
    page.waitForFunction((label) => document.activeElement?.getAttribute("aria-label") === label, name);
  await page.keyboard.press("f");
  await picks("What to filter by");
  await page.keyboard.type("product");
  await page.keyboard.press("Enter");
  await picks("Product is");
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => document.activeElement?.textContent?.trim() === "Filter");
  await page.keyboard.press("f");
  await picks("What to filter by");
  await page.keyboard.type("team");
  await page.keyboard.press("Enter");
  await picks("Team is");
  await page.getByRole("option", { name: /orders/ }).waitFor();
  await page.keyboard.type("orde");
  await page.keyboard.press("Enter");
  await page.getByText("Team is orders", { exact: true }).waitFor();
  assert.equal(query(page.url()), "?period=7d&tag:team=orders");
  await leave();
});

test("the chart is read by arrow keys", async () => {
  const { page, close: leave } = await visit("acme/costs?period=7d");
  const chart = page.getByRole("slider", { name: "Read the chart day by day" });
  await chart.focus();
  await page.keyboard.press("Home");
  assert.match(
    (await chart.getAttribute("aria-valuetext")) ?? "",
    /^Tue, 10 November 2026: \$[\d,]+\.\d\d\. (Payments|Orders|Search) \$/,
  );
  await page.keyboard.press("ArrowRight");
  assert.match((await chart.getAttribute("aria-valuetext")) ?? "", /^Wed, 11 November 2026/);
  await page.keyboard.press("Enter");
  assert.equal(query(page.url()), "?start_date=2026-11-11&end_date=2026-11-11");
  await leave();
});

test("dragging across the chart is a period", async () => {
  const { page, close: leave } = await visit("acme/costs?period=7d");
  const box = await page.locator(".plot").boundingBox();
  assert.ok(box);
  await page.mouse.move(box.x + 60, box.y + 100);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width / 2, box.y + 100, { steps: 4 });
  await page.mouse.up();
  assert.equal(query(page.url()), "?start_date=2026-11-10&end_date=2026-11-13");
  await leave();
});

test("days are walked by arrows and opened by Enter", async () => {
  const { page, close: leave } = await visit("acme/costs?period=7d");
  await page.locator("[data-day='2026-11-16']").focus();
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("Enter");
  assert.equal(query(page.url()), "?start_date=2026-11-15&end_date=2026-11-15");
  await leave();
});

test("anything is found by its name", async () => {
  const { page, close: leave } = await visit("acme/costs?period=7d");
  await page.keyboard.press("/");
  await page.getByRole("combobox", { name: "Find anything" }).fill("prod");
  await page.getByRole("option").first().waitFor();
  await page.getByRole("option", { name: /prod-dedicated-0/ }).click();
  assert.match(page.url(), /\/acme\/item\?period=7d&resource_id=lkc-/);
  await leave();
});

test("keys lead to pages, and never while somebody types", async () => {
  const { page, close: leave } = await visit("acme/costs?period=7d");
  await page.keyboard.press("g");
  await page.keyboard.press("d");
  await page.getByRole("heading", { name: "Days of acme" }).waitFor({ state: "attached" });
  await page.locator("[data-start]").waitFor();
  await page.keyboard.press("[");
  assert.equal(query(page.url()), "?start_date=2026-11-03&end_date=2026-11-09");
  await page.goto(`${BASE}acme/tags`);
  await page.getByRole("searchbox").fill("");
  await page.getByRole("searchbox").press("g");
  await page.keyboard.press("c");
  assert.equal(await page.getByRole("searchbox").inputValue(), "gc");
  await leave();
});

test("the skip link leads past the navigation", async () => {
  const { page, close: leave } = await visit("acme/costs?period=7d");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement?.id), "main");
  await leave();
});

test("a copied link has dates instead of “the last days”", async () => {
  const { page, close: leave } = await visit("acme/costs?period=7d&tag:team=search");
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.getByRole("button", { name: "Copy link" }).click();
  await page.getByText("Copied").waitFor();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  assert.equal(copied, `${BASE}acme/costs?start_date=2026-11-10&end_date=2026-11-16&tag:team=search`);
  await leave();
});

test("the chosen theme stays, without a flash", async () => {
  const { page, open, close: leave } = await visit("acme/views");
  await page.getByRole("button", { name: "Appearance, theme: system" }).click();
  await page.getByRole("button", { name: "Dark", exact: true }).click();
  await open("acme/views");
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  await leave();
});

test("an address without a tenant leads to the only one", async () => {
  const { page, close: leave } = await visit("");
  await page.waitForURL(`${BASE}acme/costs`);
  await leave();
});

test("a day has a history, which leads to what it was and to what changed since", async () => {
  const { page, asked, complaints, close: leave } = await visit("acme/days?period=7d");
  const opener = page.getByRole("button", { name: /Revision 1/ }).nth(4);
  await opener.press("Enter");
  const drawer = page.getByRole("dialog");
  const steps = drawer.getByRole("list", { name: /Revisions/ }).getByRole("listitem");
  await steps.first().waitFor();
  const texts = await steps.allTextContents();
  assert.match(texts[0] ?? "", /Revision 3present.*The provider changed the bill, 22 Nov 2026, 01:51 UTC/);
  assert.match(texts[1] ?? "", /Usage was measured again/);
  assert.match(texts[2] ?? "", /no longer kept/);
  assert.equal(texts.length, 3);
  assert.deepEqual(await findings(page), []);
  await page.keyboard.press("Escape");
  assert.ok(await opener.evaluate((element) => element === document.activeElement));
  await opener.press("Enter");
  await drawer.getByRole("link", { name: /As it was then/ }).click();
  await page.getByText("As it was 17 Nov 2026, 02:10 UTC").first().waitFor();
  const day = "start_date=2026-11-12&end_date=2026-11-12";
  await hasAsked({ page, asked }, (each) => each.includes(`/chargebacks?${day}&as_of=2026-11-17T02:10:11.5Z`));
  await page.goBack();
  await opener.click();
  await page.getByRole("link", { name: /What changed since/ }).click();
  await page.getByRole("heading", { name: /^\d+ changes$/ }).waitFor();
  await hasAsked({ page, asked }, (each) =>
    each.includes(`/chargebacks/diff?${day}&from_as_of=2026-11-17T02:10:11.5Z`),
  );
  assert.deepEqual(complaints, []);
  await leave();
});

test("two moments are chosen by date and time, and compared by any dimension", async () => {
  const { page, complaints, close: leave } = await visit("acme/costs?period=7d");
  await page.getByRole("link", { name: "Compare two moments" }).click();
  await page.getByRole("heading", { name: "Choose a moment" }).waitFor();
  const then = page.getByLabel("Then");
  await page.getByRole("button", { name: "Compare", exact: true }).click();
  await page.getByText("Enter a date and a time").waitFor();
  await then.fill("2026-11-17T02:10:11");
  await page.getByLabel("Later, or empty for now").fill("2026-11-16T00:00:00");
  await page.getByRole("button", { name: "Compare", exact: true }).click();
  await page.getByText("should not be after").waitFor();
  await page.getByLabel("Later, or empty for now").fill("");
  await then.press("Enter");
  await page.getByRole("heading", { name: /^\d+ changes$/ }).waitFor();
  assert.ok(page.url().includes("from=2026-11-17T02:10:11Z"));
  const moments = "period=7d&from_as_of=2026-11-17T02:10:11Z&group_by=identity_id";
  const { items, total_after, delta } = await ask<Difference>(`${TENANT}/chargebacks/diff?${moments}`);
  const table = page.getByRole("region", { name: "Table of changes" });
  const rows = table.locator("tbody tr");
  assert.equal(await rows.count(), items.length);
  for (const [n, item] of items.entries()) {
    const titles = await rows
      .nth(n)
      .locator("td .num")
      .evaluateAll((all) => all.map((each) => each.getAttribute("title")));
    assert.deepEqual(
      titles,
      [item.before, item.after, item.delta].map((each) => exact(each)),
    );
  }
  const foot = table.locator("tfoot .num");
  assert.equal(await foot.nth(1).getAttribute("title"), exact(total_after));
  assert.equal(await foot.nth(2).getAttribute("title"), exact(delta));
  const byProduct = page.waitForRequest(/group_by=product_type/);
  await page.getByRole("link", { name: "Product", exact: true }).click();
  await page.waitForURL(/by=product_type/);
  await byProduct;
  assert.deepEqual(complaints, []);
  await leave();
});
