/** What readers change through the page reaches the real service, and comes back as figures. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Page, RunList, Tag } from "../../src/api/shapes";
import { read } from "../../src/money/money.ts";
import { ask, costsOf, exact } from "./service.ts";
import { close, findings, real, settled, type World } from "./world.ts";

const PERIOD = "period=5d";
const TENANT = "tenants/acme";

after(close);

async function visit(path: string): Promise<World> {
  const found = await real();
  await found.open(path);
  return found;
}

async function leave({ page, complaints, close: end }: World): Promise<void> {
  assert.deepEqual(await findings(page), []);
  assert.deepEqual(complaints, []);
  await end();
}

test("a run is started from the days, is shown while it is on, and stands in the list when it has ended", async () => {
  const before = await ask<RunList>(`${TENANT}/runs`);
  const found = await visit(`acme/days?${PERIOD}`);
  const { page } = found;
  await page.getByRole("button", { name: "Run now" }).click();
  await page.getByText("A run is on", { exact: false }).first().waitFor();
  const ended = async () => {
    const [last] = (await ask<RunList>(`${TENANT}/runs`)).items;
    return last?.run_id !== before.items[0]?.run_id && last?.completed_at;
  };
  const until = Date.now() + 60_000;
  while (!(await ended())) {
    assert.ok(Date.now() < until, "the run never ended");
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  await page.getByRole("button", { name: "Run now" }).and(page.locator(":enabled")).waitFor();
  await page.reload();
  await settled(page);
  const rows = page.getByRole("region", { name: "Table of runs" }).locator("tbody tr");
  assert.equal(await rows.count(), Math.min(20, before.items.length + 1));
  assert.match((await rows.first().textContent()) ?? "", /completed/);
  await leave(found);
});

test("a tag that is written on the page moves costs from nobody's to a team's, and back when it is removed", async () => {
  const unowned = await costsOf("acme", `${PERIOD}&identity_id=UNALLOCATED&by=resource_id`);
  const resource = unowned.breakdowns[0]?.items.find((each) => each.value && each.name);
  assert.ok(resource?.value && resource.name);
  const own = await costsOf("acme", `${PERIOD}&resource_id=${encodeURIComponent(resource.value)}`);
  const untagged = await costsOf("acme", `${PERIOD}&tag:cost_centre=made-by-the-page`);
  assert.equal(read(untagged.total.amount), 0n);

  const found = await visit(`acme/unowned?${PERIOD}`);
  const { page } = found;
  await page.getByRole("checkbox", { name: new RegExp(resource.value) }).check();
  await page.getByRole("textbox", { name: "Key" }).fill("cost_centre");
  await page.getByRole("textbox", { name: "Value" }).fill("made-by-the-page");
  await page.getByRole("textbox", { name: "Your name" }).fill("alice");
  await page.getByRole("button", { name: "Preview" }).click();
  await page.getByRole("button", { name: "Write" }).click();
  await page.getByText("1 created, 0 changed, 0 left as they were.").waitFor();
  const tags = await ask<Page<Tag>>(`${TENANT}/tags?tag_key=cost_centre`);
  assert.deepEqual(
    tags.items.map(({ entity_id, tag_value, created_by }) => [entity_id, tag_value, created_by]),
    [[resource.value, "made-by-the-page", "alice"]],
  );

  await found.open(`acme/costs?${PERIOD}&by=tag:cost_centre`);
  const item = page.locator(".overtime .ranked a.row", { hasText: "made-by-the-page" });
  assert.equal(await item.locator(".amount").getAttribute("title"), exact(own.total.amount));
  await item.click();
  await page.locator(`.lead[title="${exact(own.total.amount)}"]`).waitFor();

  await found.open(`acme/tags?${PERIOD}&key=cost_centre`);
  const remove = page.getByRole("button", { name: `cost_centre of ${resource.value}` });
  await remove.click();
  await remove.click();
  await page.getByText("made-by-the-page").first().waitFor({ state: "detached" });
  assert.equal((await ask<Page<Tag>>(`${TENANT}/tags?tag_key=cost_centre`)).total, 0);
  assert.equal(read((await costsOf("acme", `${PERIOD}&tag:cost_centre=made-by-the-page`)).total.amount), 0n);
  await leave(found);
});

test("a suspended tenant says why, and its days what they lack", async () => {
  const found = await visit("spoiled/costs?period=3d");
  const { page } = found;
  await page.getByText("The bill of this tenant could not be fetched.").waitFor();
  await page.getByText("1 day differs").waitFor();
  assert.ok(await page.getByText("0.000000000001", { exact: true }).isVisible());
  await leave(found);
  const days = await visit("spoiled/days?period=3d");
  const table = days.page.getByRole("region", { name: "Table of days" });
  assert.match((await table.textContent()) ?? "", /differs from the bill/);
  assert.match((await table.textContent()) ?? "", /equal to the bill/);
  const why = days.page.getByRole("status").filter({ hasText: "Suspended." });
  assert.match((await why.textContent()) ?? "", /The bill of this tenant could not be fetched\..*started again/);
  for (const name of ["Run now", "Recalculate these days …"])
    assert.ok(await days.page.getByRole("button", { name }).isDisabled(), name);
  await leave(days);
});

test("a day that is not calculated yet is pending, and is no zero", async () => {
  const { days } = await costsOf("spoiled", "start_date=2026-01-30&end_date=2026-02-09&include=days");
  const pending = (days ?? []).filter((each) => each.state === "pending").map((each) => each.date);
  assert.ok(pending.length > 0);
  const found = await visit("spoiled/costs?start_date=2026-01-30&end_date=2026-02-09");
  for (const day of pending)
    assert.match((await found.page.locator(`[data-day="${day}"]`).getAttribute("title")) ?? "", /2026, pending$/);
  await leave(found);
});

test("a tenant of which nothing is known yet says so on every page", async () => {
  for (const [name, text] of Object.entries({
    costs: "No costs in this view",
    rows: "No rows in this view",
    map: "No costs in this view",
    unowned: "Everything has an owner",
    tags: "There are no tags yet",
    views: "None yet.",
  })) {
    const found = await visit(`plain/${name}`);
    await found.page.getByText(text).first().waitFor();
    await leave(found);
  }
});
