/** A policy is edited on the page, and the service says who would pay what. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { picture, pictures } from "./picture.ts";
import { ask } from "./service.ts";
import { BASE, close, findings, leave, visit } from "./world.ts";

const PERIOD = "period=7d";

interface Listed {
  items: { product_type: string; source: string; portions: { methods: string[] }[] }[];
}

after(close);

test("the rules of a cost category are tried in the same way, and nothing can be put in force by it", async () => {
  const rules = [{ match: { product_category: ["KAFKA"] }, assign: "platform" }];
  const category = new URL("../api/v1/tenants/acme/cost-categories/tried", BASE);
  const put = await fetch(category, {
    method: "PUT",
    headers: { "Content-Type": "application/json", "If-None-Match": "*" },
    body: JSON.stringify({ document: { values: { platform: null }, rules } }),
  });
  assert.equal(put.status, 201, await put.text());
  const found = await visit(`acme/categories/tried?${PERIOD}`);
  const { page } = found;
  await page.getByRole("button", { name: "Edit", exact: true }).click();
  await page.getByRole("button", { name: "Whole document" }).click();
  const text = page.getByRole("textbox", { name: /The document as JSON/ });
  const document = JSON.parse(await text.inputValue());
  await text.fill(JSON.stringify({ ...document, rules: [] }));
  await page.getByRole("button", { name: "Show what changes" }).click();
  await page.getByRole("button", { name: /^Try it/ }).click();
  await page.getByRole("heading", { name: "Who would pay more" }).waitFor({ timeout: 60_000 });
  await page.getByRole("heading", { name: "Who would pay less" }).waitFor();
  assert.equal(await page.getByRole("link", { name: "Download the plan" }).count(), 0);
  assert.deepEqual(await findings(page, "all"), []);
  await picture(page, "category-tried.png");
  await leave(found);
  const gone = await fetch(category, { method: "DELETE", headers: { "If-Match": put.headers.get("ETag") ?? "" } });
  assert.equal(gone.status, 204);
});

test("a policy is edited, tried on the days of the page, and those who would pay more are named", async () => {
  const { items } = await ask<Listed>("tenants/acme/policies?page_size=1000");
  const product = "KAFKA_NUM_CKUS";
  assert.ok(items.some((each) => each.product_type === product));
  const found = await visit(`acme/policies?${PERIOD}`);
  const { page } = found;
  await page.getByRole("button", { name: `Edit the policy of ${product}` }).click();
  const draft = page.getByRole("textbox", { name: /allocation_policies/ });
  assert.match(await draft.inputValue(), new RegExp(`"${product}":\n  portions:`));
  assert.deepEqual(await findings(page, "all"), []);

  await draft.fill("KAFKA_NUM");
  await page.getByRole("button", { name: `Complete to ${product}:` }).click();
  assert.equal(await draft.inputValue(), `${product}:`);
  await draft.fill(`${product}: {portions: [{share: "0.5", try: ["even(active)"]}]}`);
  const attempt = page.getByRole("button", { name: /^Try it/ });
  await attempt.click();
  await page.getByRole("alert").filter({ hasText: "sum" }).waitFor();

  await draft.fill(`${product}: {portions: [{share: "1", try: ["even(active)", "unallocated"]}]}`);
  await attempt.click();
  await page.getByRole("heading", { name: "Who would pay more" }).waitFor({ timeout: 60_000 });
  await page.getByRole("heading", { name: "Who would pay less" }).waitFor();
  const differing = page.getByRole("region", { name: "Table of what differs" }).locator("tbody tr");
  assert.deepEqual(await differing.locator("th").allTextContents(), [product]);
  assert.deepEqual(await findings(page, "all"), []);
  await pictures(page, "policies");
  await page
    .getByRole("heading", { name: /^A line of/ })
    .first()
    .waitFor();
  assert.ok((await page.getByRole("heading", { name: /^Then:/ }).count()) > 0);
  const plan = await page.getByRole("link", { name: "Download the plan" }).getAttribute("href");
  assert.match(plan ?? "", /simulations\/[0-9a-f]{64}$/);
  await page
    .getByRole("textbox", { name: /First day/ })
    .or(page.getByLabel(/First day/))
    .fill("2099-01-01");
  await page.getByLabel("Why").fill("Everybody shares the base");
  await page.getByRole("button", { name: "Put it in force" }).click();
  await page.getByText("In force from").waitFor();
  await picture(page, "policies-applied.png");
  const versions = page.getByRole("region", { name: "Table of versions" }).locator("tbody tr");
  await versions.filter({ hasText: "Everybody shares the base" }).waitFor();
  assert.deepEqual(await findings(page, "all"), []);
  await page.getByRole("button", { name: /^Remove/ }).click();
  await page.getByRole("button", { name: /^Really remove/ }).click();
  await versions.first().waitFor({ state: "detached" });
  const { items: kept } = await ask<{ items: { state: string }[] }>("tenants/acme/simulations");
  assert.equal(kept[0]?.state, "done");
  const version = await page.getByRole("link", { name: /Download it/ }).getAttribute("href");
  assert.match(decodeURIComponent(version ?? ""), /- effective_from: \d{4}-\d\d-01\n/);
  await leave(found);
});
