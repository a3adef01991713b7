/** What readers change through the page reaches the real service, and comes back as figures. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Aggregate, Category, Coverage, Page, RunList, Tag } from "../../src/api/shapes";
import { add } from "../../src/calendar/days.ts";
import { full } from "../../src/format/days.ts";
import { read } from "../../src/money/money.ts";
import { ask, costsOf, exact } from "./service.ts";
import { BASE, close, leave as end, findings, settled, visit, type World } from "./world.ts";

const PERIOD = "period=5d";
const TENANT = "tenants/acme";

after(close);

/** Close a window in which nothing went wrong and axe finds nothing. */
async function leave(found: World): Promise<void> {
  assert.deepEqual(await findings(found.page, "all"), []);
  await end(found);
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
  await page.getByRole("combobox", { name: "Value" }).fill("made-by-the-page");
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
  // From a day on it is another's; what was before stays.
  const second = add(own.start_date, 2);
  await page.getByRole("checkbox", { name: `Choose ${resource.value}` }).check();
  const carriers = page.getByRole("region", { name: "What carries it" });
  await carriers.getByRole("combobox", { name: "What to do" }).selectOption("change");
  await carriers.getByRole("combobox", { name: "Value" }).fill("taken-over");
  await carriers.getByLabel("From", { exact: true }).fill(second);
  await carriers.getByRole("button", { name: "Preview" }).click();
  await carriers.getByRole("button", { name: "Write" }).click();
  await page.getByText("0 created, 1 changed, 0 left as they were.").waitFor();
  await carriers.getByRole("button", { name: "Undo" }).click();
  await page.getByText("Undone: the tags are as they were before.").waitFor();
  const [undone, ...more] = (await ask<Page<Tag>>(`${TENANT}/tags?tag_key=cost_centre`)).items;
  assert.deepEqual([undone?.tag_value, undone?.valid_from, undone?.valid_to], ["made-by-the-page", null, null]);
  assert.equal(more.length, 0);
  // And once more.
  await carriers.getByRole("combobox", { name: "Value" }).fill("taken-over ");
  await carriers.getByRole("button", { name: "Preview" }).click();
  await carriers.getByRole("button", { name: "Write" }).click();
  await page.getByText("0 created, 1 changed, 0 left as they were.").waitFor();
  const table = page.getByRole("region", { name: "Table of tags" });
  await table.getByText(`from ${full(second)}`, { exact: true }).waitFor();
  await table.getByText(`to ${full(add(second, -1))}`, { exact: true }).waitFor();
  const [former, later] = await Promise.all(
    ["made-by-the-page", "taken-over"].map((value) => costsOf("acme", `${PERIOD}&tag:cost_centre=${value}`)),
  );
  assert.ok(former && later && read(former.total.amount) !== 0n && read(later.total.amount) !== 0n);
  assert.equal(read(former.total.amount) + read(later.total.amount), read(own.total.amount));

  for (const value of ["made-by-the-page", "taken-over"]) {
    const row = table.getByRole("row").filter({ hasText: value });
    const remove = row.getByRole("button", { name: `cost_centre of ${resource.value}` });
    await remove.click();
    await remove.click();
    await row.waitFor({ state: "detached" });
  }
  assert.equal((await ask<Page<Tag>>(`${TENANT}/tags?tag_key=cost_centre`)).total, 0);
  assert.equal(read((await costsOf("acme", `${PERIOD}&tag:cost_centre=made-by-the-page`)).total.amount), 0n);
  await leave(found);
});

test("a cost category is made of a tag, and what is left gets a value; the next answers have it, whoever was faster", async () => {
  const categories = `${TENANT}/cost-categories`;
  const found = await visit(`acme/categories?${PERIOD}`);
  const { page } = found;
  await page.getByRole("button", { name: "Begin with the tag team" }).click();
  await page.getByRole("button", { name: "Show what changes" }).click();
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.waitForURL(/\/categories\/team\?/);
  await settled(page);
  const before = await ask<Coverage>(`${categories}/team/coverage?${PERIOD}`);
  await page.getByText(`${before.percent}%`, { exact: true }).waitFor();
  const sums = await ask<Aggregate>(
    `${TENANT}/chargebacks/aggregate?${PERIOD}&group_by=category:team&time_bucket=month`,
  );
  const values = page.getByRole("region", { name: "Table of values" });
  assert.equal(await values.locator("tfoot .num").getAttribute("title"), exact(sums.total_amount));

  const [who] = before.top_unassigned;
  assert.ok(who);
  const name = who.display_name ?? who.identity_id;
  await page.getByRole("button", { name: `Assign ${name}`, exact: true }).click();
  const dialog = page.getByRole("dialog", { name: "Assign" });
  await dialog.getByRole("combobox", { name: "Value" }).selectOption("Another value …");
  await dialog.getByRole("textbox", { name: "Another value" }).fill("made-by-the-page");
  await dialog.getByRole("button", { name: "Show what changes" }).click();
  const save = dialog.getByRole("button", { name: "Save" });
  await save.waitFor();
  // Meanwhile somebody else changes it.
  const theirs = { match: { identity: ["nobody-has-this-id"] }, assign: "theirs" };
  const mine = await fetch(new URL(`../api/v1/${categories}/team`, BASE));
  const { document } = (await mine.json()) as Category;
  const put = await fetch(mine.url, {
    method: "PUT",
    headers: { "Content-Type": "application/json", "If-Match": mine.headers.get("ETag") ?? "" },
    body: JSON.stringify({ document: { ...document, rules: [theirs, ...((document.rules as []) ?? [])] } }),
  });
  assert.equal(put.status, 200);
  await save.click();
  await dialog.getByText("Someone else was faster", { exact: false }).first().waitFor();
  await dialog.getByRole("button", { name: "Load theirs, keep mine" }).click();
  await dialog.getByRole("alert").waitFor({ state: "detached" });
  await save.click();
  await dialog.getByText("Saved as version 3.").waitFor();
  const { document: after } = await ask<Category>(`${categories}/team`);
  assert.deepEqual(
    (after.rules as { assign: unknown }[]).map((each) => each.assign),
    ["made-by-the-page", "theirs", { from_tag: "team" }],
  );

  await found.open(`acme/costs?${PERIOD}`);
  const item = page.locator(".ranked a.row", { hasText: "made-by-the-page" }).first();
  const own = await costsOf("acme", `${PERIOD}&category:team=made-by-the-page`);
  assert.equal(own.total.amount, who.amount);
  assert.equal(await item.locator(".amount").getAttribute("title"), exact(who.amount));
  await item.click();
  await page.locator(`.lead[title="${exact(who.amount)}"]`).waitFor();

  await found.open(`acme/categories/team?${PERIOD}`);
  await page.getByRole("button", { name: "Undo version 3" }).click();
  const undoing = page.getByRole("dialog", { name: "Undo version 3" });
  await undoing.getByRole("region", { name: "What moves" }).getByText("made-by-the-page").waitFor();
  await undoing.getByRole("button", { name: "Put version 2 back" }).click();
  await undoing.getByText("Undone: version 4 is as version 2 was.").waitFor();
  const { document: again } = await ask<Category>(`${categories}/team`);
  assert.deepEqual(again.rules, (after.rules as unknown[]).slice(1));
  await page.keyboard.press("Escape");
  const now = await fetch(mine.url);
  const gone = await fetch(mine.url, { method: "DELETE", headers: { "If-Match": now.headers.get("ETag") ?? "" } });
  assert.equal(gone.status, 204);
  await leave(found);
});

test("a suspended tenant says why, and its days what they lack", async () => {
  const found = await visit("spoiled/costs?period=3d");
  const { page } = found;
  await page.getByText("The bill of this tenant could not be fetched.").waitFor();
  await page.getByText("1 day differs").waitFor();
  await page.getByText("0.000000000001", { exact: true }).waitFor();
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
    costs: "No day is calculated yet",
    rows: "No day is calculated yet",
    map: "No day is calculated yet",
    unowned: "No day is calculated yet",
    categories: "There is no cost category yet",
    tags: "There are no tags yet",
    views: "None yet.",
  })) {
    const found = await visit(`plain/${name}`);
    await found.page.getByText(text).first().waitFor();
    await leave(found);
  }
});
