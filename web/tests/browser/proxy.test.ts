/** Behind a real nginx, below a path, with its map of users: alice may see acme, and nothing else. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { costsOf, exact } from "./service.ts";
import { close, findings, hasAsked, real, settled, type World } from "./world.ts";

const PROXY = process.env.PROXY ?? "";
const PERIOD = "period=5d";

after(close);

function as(user: string): Promise<World> {
  const httpCredentials = { username: user, password: process.env.PASSWORD ?? "" };
  return real({ ignoreHTTPSErrors: true, httpCredentials }, PROXY);
}

async function leave({ page, complaints, close: end }: World): Promise<void> {
  assert.deepEqual(await findings(page), []);
  assert.deepEqual(complaints, []);
  await end();
}

test("the page works below a path: deep links, pages that load later, and the API", async () => {
  const whole = await costsOf("acme", PERIOD);
  const found = await as("alice");
  const { page } = found;
  assert.match(PROXY, /^https:.*\/apps\/chargeback\/ui\/$/);
  await found.open(`acme/costs?${PERIOD}`);
  assert.equal(await page.locator(".lead").getAttribute("title"), exact(whole.total.amount));
  for (const [key, title] of Object.entries({ t: "Topics", m: "Map", r: "Rows", u: "Unowned", d: "Days" })) {
    await page.keyboard.press("g");
    await page.keyboard.press(key);
    await page.getByRole("heading", { name: `${title} of acme` }).waitFor({ state: "attached" });
    await settled(page);
    assert.ok(page.url().startsWith(PROXY), page.url());
    assert.equal(await page.getByRole("alert").count(), 0);
  }
  await page.reload();
  await settled(page);
  await page.getByRole("heading", { name: "Equal to the last digit" }).waitFor();
  assert.ok(found.asked.every((each) => each.startsWith("/apps/chargeback/api/v1/")));
  await leave(found);
});

test("ids with slashes reach the API as they are", async () => {
  const found = await as("alice");
  await found.open(`acme/item?${PERIOD}&resource_id=a%2Fb%3A%20c`);
  await found.page.getByText("No costs in this view").waitFor();
  await hasAsked(found, (each) => each.includes("/entities/resource/a%2Fb%3A%20c/tags"));
  await leave(found);
});

test("a tenant that is not the reader's: not allowed, and no figures", async () => {
  const found = await as("alice");
  const { page } = found;
  await page.goto(`${PROXY}spoiled/costs?${PERIOD}`);
  await page.getByRole("heading", { name: "You may not see this" }).first().waitFor();
  await page.getByText("HTTP 403").first().waitFor();
  assert.equal(await page.locator(".lead").count(), 0);
  assert.ok(!(await page.textContent("body"))?.includes("$"));
  await leave(found);
});

test("the list of tenants is not for everybody: alice types her tenant, finance chooses", async () => {
  const alice = await as("alice");
  await alice.page.goto(PROXY);
  await alice.page.getByRole("textbox", { name: "Tenant" }).fill("acme");
  await alice.page.keyboard.press("Enter");
  await alice.page.waitForURL(`${PROXY}acme/costs`);
  await alice.page.locator(".lead").waitFor();
  await leave(alice);
  const finance = await as("finance");
  await finance.open("");
  await finance.page.getByRole("link", { name: /^spoiled/ }).click();
  await finance.page.getByText("Suspended.").waitFor();
  await leave(finance);
});

test("the help leads to the documentation of the API, which asks this service", async () => {
  const found = await as("finance");
  const { page } = found;
  await found.open(`acme/views`);
  await page.getByRole("link", { name: "Help", exact: true }).click();
  const [docs] = await Promise.all([
    page.context().waitForEvent("page"),
    page.getByRole("link", { name: "its documentation" }).click(),
  ]);
  await docs.getByRole("heading", { name: /^Chargeback/, level: 1 }).waitFor();
  assert.equal(docs.url(), new URL("../docs", PROXY).href);
  await docs.getByText("/api/v1/tenants", { exact: true }).first().waitFor();
  assert.ok((await docs.textContent(".servers, .scheme-container"))?.includes("/apps/chargeback"));
  await leave(found);
});
