import assert from "node:assert/strict";
import { after, test } from "node:test";
import { BASE, close, RECORDED, type World, world } from "./world.ts";

after(close);

async function visit(path: string): Promise<World> {
  const found = await world();
  await found.open(path);
  return found;
}

const query = (url: string) => new URL(url).search;

test("the figures are the API's, to the last digit", async () => {
  const { page, close: leave } = await visit("acme/costs?period=7d");
  const { total, breakdowns, amounts } = RECORDED.costs;
  const exact = (text: string) => `USD ${text.replace(/0+$/, "").replace("-", "−")}`;
  assert.equal(await page.locator(".lead").getAttribute("title"), exact(total.amount));
  const list = page.locator(".overtime .ranked .amount");
  for (const [n, item] of breakdowns[0].items.entries())
    assert.equal(await list.nth(n).getAttribute("title"), exact(item.amount));
  await page.getByRole("link", { name: "Show as a table" }).click();
  const cells = page.locator(".overtime tbody tr td:nth-child(2) .num");
  for (const [n, amount] of amounts.entries()) assert.equal(await cells.nth(n).getAttribute("title"), exact(amount));
  assert.equal(await cells.last().getAttribute("title"), exact(total.amount));
  await leave();
});

test("the bill adds up to the service's total and to the provider's bill, and is a file by its address", async () => {
  const { page, asked, close: leave } = await visit("acme/bill?period=7d");
  const { buckets, total_amount } = RECORDED.aggregate;
  const digits = async (row: string) =>
    (await page.locator(`.bill ${row} .decimals`).allTextContents()).map((each) => each.replaceAll(",", ""));
  const plain = (text: string) => text.replace(/0+$/, "");
  assert.deepEqual(await digits("tfoot tr"), [plain(total_amount)]);
  const lines = buckets.map((each: { total_amount: string }) => plain(each.total_amount));
  assert.deepEqual(new Set(await digits("tbody tr")), new Set(lines));
  await page.getByText("Equal to the provider’s bill, to the last digit").waitFor();
  const months = "start_date=2026-11-01&end_date=2026-11-30";
  const wanted = `?${months}&group_by=tag:team&time_bucket=month&names=true`;
  assert.ok(asked.some((each) => each.endsWith(`/chargebacks/aggregate${wanted}`)));
  const file = await page.getByRole("link", { name: "CSV", exact: true }).getAttribute("href");
  assert.ok(file?.endsWith(`/chargebacks/aggregate.csv${wanted}`));
  const parts = page.waitForRequest(/aggregate\?.*group_by=tag:team&group_by=product_type/);
  await page.getByRole("link", { name: "With products" }).click();
  await parts;
  await page.keyboard.press("[");
  assert.equal(query(page.url()), "?start_date=2026-10-01&end_date=2026-10-31&parts=1");
  await leave();
});

test("bill lines leave aside what they know nothing of, and lead to their shares", async () => {
  const { page, asked, close: leave } = await visit("acme/rows?period=7d&identity_id=sa-57i4nz");
  await page.getByRole("link", { name: "Bill lines" }).click();
  await page.getByText("Bill lines know nothing of identity").waitFor();
  const { line_id } = RECORDED.billing.items[0].metadata;
  const shares = page.waitForRequest(new RegExp(`/chargebacks\\?.*line_id=${line_id}`));
  await page
    .getByRole("link", { name: /prod-dedicated-0/ })
    .first()
    .click();
  await page.getByText(`Bill line is ${line_id}`, { exact: true }).waitFor();
  assert.ok(asked.some((each) => /\/billing\?/.test(each) && !each.includes("identity_id")));
  await shares;
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
  const asked = page.waitForRequest(/\/flow\?start_date=2026-11-11&end_date=2026-11-11/);
  await page.keyboard.press("ArrowRight");
  await page.waitForURL(/day=2026-11-11$/);
  await asked;
  await page.getByRole("link", { name: "All 7 days" }).click();
  assert.equal(query(page.url()), "?period=7d");
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
  const file = await page.getByRole("link", { name: "CSV", exact: true }).last().getAttribute("href");
  assert.match(file ?? "", /aggregate\.csv\?period=7d&group_by=product_type&time_bucket=day/);
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "More about Days" }).click();
  await page.getByRole("link", { name: "Show as a table" }).last().click();
  assert.equal(query(page.url()), "?period=7d&table=days");
  assert.equal(await page.locator("section[aria-label='Table of days'] tbody tr").count(), 7);
  await leave();
});

test("a click is a filter, the filter is the address and the question, and back undoes it", async () => {
  const { page, asked, close: leave } = await visit("acme/costs?period=7d");
  await page
    .getByRole("link", { name: /^search / })
    .first()
    .click();
  assert.equal(query(page.url()), "?period=7d&tag:team=search");
  await page.getByText("Team is search", { exact: true }).waitFor();
  assert.ok(asked.some((each) => /\/costs\?.*tag:team=search/.test(each)));
  await page.getByRole("link", { name: "Leave out Kafka CKUs" }).first().click();
  assert.equal(query(page.url()), "?period=7d&tag:team=search&not.product_type=KAFKA_NUM_CKUS");
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
  await page.getByRole("option", { name: /shipping/ }).waitFor();
  await page.keyboard.type("shipp");
  await page.keyboard.press("Enter");
  await page.getByText("Team is shipping", { exact: true }).waitFor();
  assert.equal(query(page.url()), "?period=7d&tag:team=shipping");
  await leave();
});

test("the chart is read by arrow keys", async () => {
  const { page, close: leave } = await visit("acme/costs?period=7d");
  const chart = page.getByRole("slider", { name: "Read the chart day by day" });
  await chart.focus();
  await page.keyboard.press("Home");
  assert.match(
    (await chart.getAttribute("aria-valuetext")) ?? "",
    /^Tue, 10 November 2026: \$2,207\.55\. Without this tag \$/,
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

test("why this amount: the dialog holds the focus and gives it back", async () => {
  const { page, close: leave } = await visit("acme/rows?period=7d");
  const row = page.getByRole("button", { name: /why this amount/ }).nth(2);
  await row.focus();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog", { name: "Why this amount?" });
  await dialog.waitFor();
  assert.equal(await dialog.getByRole("listitem").count(), 5);
  const { amount, metadata } = RECORDED.rows.items[2];
  assert.equal((await dialog.locator(".whole").textContent())?.replaceAll(",", ""), amount.replace(/0+$/, ""));
  assert.ok((await dialog.textContent())?.includes(metadata.line_id));
  await page.keyboard.press("Escape");
  assert.match((await page.evaluate(() => document.activeElement?.textContent)) ?? "", /why this amount/);
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
  await page.getByRole("button", { name: "Theme: system" }).click();
  await page.getByRole("button", { name: "Theme: light" }).click();
  await open("acme/views");
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  await leave();
});

test("an address without a tenant leads to the only one", async () => {
  const { page, close: leave } = await visit("");
  await page.waitForURL(`${BASE}acme/costs`);
  await leave();
});
