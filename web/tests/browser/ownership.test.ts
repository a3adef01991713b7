/** What has no owner or is not assigned: several get the value that is proposed for them, and it can be undone. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import type { Tag } from "../../src/api/shapes";
import type { CategoryDocument } from "../../src/pages/categories/document";
import { acme, type Organisation } from "./fake.ts";
import { pictures } from "./picture.ts";
import { BASE, close, findings, leaveAtEveryWidth, over, reader, settled, type World } from "./world.ts";

const PAGE = "acme/unowned?period=7d";
const NAMES = [
  "payments-api",
  "orders-web",
  "payments-batch",
  "payments-eu-web",
  "",
  "search-index",
  "payments-mail",
  "payments-ledger",
  "legacy-importer-with-a-long-name-that-nobody-remembers",
];
/** What has no team, and so no cost centre. */
const OPEN = ["sa-3", "sa-6", "sa-7", "sa-8", "UNALLOCATED"];
const CATEGORY = new URL("../api/v1/tenants/acme/cost-categories/cost_center", BASE);

/** Identities of three teams; some that are named like the others of a team have none. */
function teams(): Organisation {
  const of = acme();
  const named = NAMES.map((name, n) => [`sa-${n}`, name]).filter(([, name]) => name);
  const rows = of.rows.map((each) => {
    const [team = null] = (of.names[each.identity_id] && NAMES[Number(each.identity_id.slice(3))]?.split("-")) || [];
    return { ...each, "tag:team": OPEN.includes(each.identity_id) ? null : team };
  });
  return { ...of, rows, names: { ...of.names, ...Object.fromEntries(named) } };
}

after(close);

async function visit(of = teams(), path = PAGE): Promise<World> {
  const found = await over(of);
  await found.open(path);
  if (path === PAGE)
    await listed(found.page)
      .locator("tbody tr")
      .nth(OPEN.length - 1)
      .waitFor();
  return found;
}

const cardOf = (page: Page) => page.getByRole("region", { name: "To be assigned", exact: true });
const listed = (page: Page) => cardOf(page).getByRole("region", { name: "Table of what is to be assigned" });
const rowsOf = (page: Page) => listed(page).locator("tbody tr").allTextContents();
const rules = (): Promise<CategoryDocument["rules"]> =>
  fetch(CATEGORY).then(async (answer) => (await answer.json()).document.rules);

/** Choose three that are named like others, and take what is proposed for them, up to the preview. */
async function takeProposal(page: Page): Promise<void> {
  for (const name of ["payments-eu-web", "payments-mail", "payments-ledger"]) {
    await listed(page).getByRole("checkbox", { name }).focus();
    await page.keyboard.press("Space");
  }
  const card = cardOf(page);
  await card.getByText("3 things chosen:").waitFor();
  await card.getByText("2 of 2 named payments-… have it", { exact: true }).last().waitFor();
  await card.getByRole("button", { name: "Take Payments" }).click();
  await card.getByLabel("Reason").fill("CHG-77");
  await card.getByRole("button", { name: "Show what changes" }).click();
  await card.getByRole("region", { name: "What moves" }).waitFor();
}

test("three get the value that others named like them have: seen, saved, and undone", async () => {
  const found = await visit();
  const { page } = found;
  const before = await rules();
  await listed(page).getByText("2 of 2 named payments-… have it").first().waitFor();
  const all = await rowsOf(page);
  await takeProposal(page);
  const card = cardOf(page);
  const moves = await card.getByRole("region", { name: "What moves" }).locator("tbody tr").allTextContents();
  assert.deepEqual(
    moves.map((each) => each.replace(/\$.*/, "")).sort(),
    ["payments-eu-web", "payments-ledger", "payments-mail"].map((name) => `${name}Not assignedPayments`),
  );
  assert.equal(await card.getByRole("region", { name: "Rules to look at" }).count(), 0);
  assert.doesNotMatch((await card.textContent()) ?? "", /−\$?0\.00/);
  assert.deepEqual(await findings(page, "all"), []);
  await pictures(page, "ownership");
  assert.deepEqual(await rules(), before);

  await card.getByRole("button", { name: "Save", exact: true }).focus();
  await page.keyboard.press("Enter");
  const notice = card.getByRole("status").filter({ hasText: "Saved as version 4." });
  await notice.waitFor();
  assert.ok(await notice.evaluate((each) => each === document.activeElement));
  await listed(page).getByText("payments-mail").waitFor({ state: "detached" });
  assert.equal((await rowsOf(page)).length, all.length - 3);
  const ids = ["sa-7", "sa-6", "sa-3"];
  const [mine, ...others] = (await rules()) ?? [];
  assert.deepEqual(mine, { match: { identity: { exact: ids } }, assign: "payments", reason: "CHG-77" });
  assert.deepEqual(others, before);
  await settled(page);

  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await card.getByText("Undone: version 5 is as version 3 was.").waitFor();
  await listed(page).getByText("payments-mail").waitFor();
  assert.deepEqual(await rowsOf(page), all);
  assert.deepEqual(await rules(), before);
  await leaveAtEveryWidth(found);
});

test("what somebody else has saved since is not undone", async () => {
  const found = await visit();
  const { page } = found;
  await takeProposal(page);
  const card = cardOf(page);
  await card.getByRole("button", { name: "Save", exact: true }).click();
  await card.getByText("Saved as version 4.").waitFor();
  const theirs = { rules: [{ match: { identity: ["sa-1"] }, assign: "orders" }] };
  await fetch(CATEGORY, { method: "PUT", body: JSON.stringify({ document: theirs }) });
  await card.getByRole("button", { name: "Undo" }).click();
  const refusal = card.getByRole("alert");
  await refusal.getByText("Nothing was undone.").waitFor();
  assert.match(
    (await refusal.textContent()) ?? "",
    /Version 5 was saved by api, .* UTC, after your version 4\. Putting version 3 back would undo that, too\./,
  );
  assert.deepEqual(await findings(page, "all"), []);
  assert.deepEqual(await rules(), theirs.rules);
  await leaveAtEveryWidth(found);
});

test("the list is in order of cost, of proposals or of names, and what has the same proposal is chosen at once", async () => {
  const found = await visit();
  const { page } = found;
  const card = cardOf(page);
  const amounts = (await listed(page).locator("tbody .num").allTextContents()).map((each) =>
    Number(each.replace(/[$,]/g, "")),
  );
  assert.equal(amounts.length, 5);
  assert.deepEqual(
    amounts,
    [...amounts].sort((a, b) => b - a),
  );
  const order = card.getByRole("navigation", { name: "Order" });
  await order.getByRole("link", { name: "Name" }).click();
  assert.match((await rowsOf(page))[0] ?? "", /^ legacy-importer/);
  await order.getByRole("link", { name: "Proposal" }).click();
  await settled(page);
  assert.match(page.url(), /sort=proposal/);
  const proposals = await listed(page).locator("tbody td:nth-child(2)").allTextContents();
  assert.deepEqual(proposals, [...proposals].sort());
  await card.getByRole("button", { name: "Proposed Payments, 3" }).click();
  await card.getByText("3 things chosen:").waitFor();
  await card.getByRole("button", { name: "All 5" }).click();
  await card.getByText("5 things chosen:").waitFor();
  await card.getByRole("button", { name: "Take Payments for 3 of 5" }).click();
  await card.getByText("3 things chosen:").waitFor();
  assert.equal(await card.getByRole("combobox", { name: "Value" }).inputValue(), "payments");
  await card.getByRole("button", { name: "None" }).click();
  await card.getByText("3 things chosen:").waitFor({ state: "detached" });
  await leaveAtEveryWidth(found);
});

test("what has no owner and who is not assigned get a value at once, each by a rule of its own", async () => {
  const found = await visit();
  const { page } = found;
  const card = cardOf(page);
  for (const name of ["prod-enterprise-1", "payments-mail"]) await listed(page).getByRole("checkbox", { name }).check();
  await card.getByText("2 things chosen:").waitFor();
  await card.getByLabel("Value").selectOption("Platform");
  await card.getByRole("button", { name: "Show what changes" }).click();
  await card.getByRole("button", { name: "Save", exact: true }).click();
  await card.getByText("Saved as version 4.").waitFor();
  const [one, other] = (await rules()) ?? [];
  assert.deepEqual(
    [one, other].sort((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b))),
    [
      {
        match: { all: [{ identity: ["UNALLOCATED"] }, { resource: { exact: ["lkc-1"] } }] },
        assign: "platform",
      },
      { match: { identity: { exact: ["sa-6"] } }, assign: "platform" },
    ],
  );
  // It has no owner, but it is assigned.
  await listed(page).getByText("prod-enterprise-1").waitFor({ state: "detached" });
  await leaveAtEveryWidth(found);
});

test("who may not change categories sees what is to be assigned, and nothing to change it", async () => {
  const found = await visit({ ...teams(), me: reader(["read"]) });
  const { page, asked } = found;
  assert.equal((await rowsOf(page)).length, 5);
  assert.equal(await cardOf(page).getByRole("checkbox").count(), 0);
  assert.equal(await cardOf(page).getByRole("link", { name: "Proposal" }).count(), 0);
  assert.ok(!asked.some((each) => each.includes("group_by=identity_id")));
  await leaveAtEveryWidth(found);
});

const teamsNow = async (): Promise<Record<string, string>> => {
  const answer = await fetch(new URL("../api/v1/tenants/acme/tags?tag_key=team", BASE));
  const { items }: { items: Tag[] } = await answer.json();
  return Object.fromEntries(items.map((each) => [each.entity_id, each.tag_value]));
};

/** Give two identities another team, and press Undo after `meanwhile`. */
async function tagAndUndo(page: Page, meanwhile: () => Promise<unknown>): Promise<void> {
  const card = page.getByRole("region", { name: "What carries it" });
  for (const id of ["sa-0", "sa-1"]) await card.getByRole("checkbox", { name: `Choose ${id}` }).check();
  await card.getByRole("combobox", { name: "What to do" }).selectOption("change");
  await card.getByRole("combobox", { name: "Value" }).fill("search");
  await card.getByRole("textbox", { name: "Your name" }).fill("alice");
  await card.getByRole("button", { name: "Preview" }).click();
  await card.getByRole("button", { name: "Write" }).click();
  await card.getByText("0 created, 2 changed, 0 left as they were.").waitFor();
  const { "sa-0": one, "sa-1": other } = await teamsNow();
  assert.deepEqual([one, other], ["search", "search"]);
  await meanwhile();
  assert.deepEqual(await findings(page, "all"), []);
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
}

test("tags that were written are put back as they were", async () => {
  const found = await visit(teams(), "acme/tags?period=7d");
  const before = await teamsNow();
  await tagAndUndo(found.page, async () => undefined);
  await found.page.getByText("Undone: the tags are as they were before.").waitFor();
  assert.deepEqual(await teamsNow(), before);
  await leaveAtEveryWidth(found);
});

test("tags that somebody has changed since are not put back", async () => {
  const found = await visit(teams(), "acme/tags?period=7d");
  const theirs = { items: [{ entity_type: "identity", entity_id: "sa-1", tag_key: "team", tag_value: "theirs" }] };
  const bulk = new URL("../api/v1/tenants/acme/tags/bulk", BASE);
  await tagAndUndo(found.page, () => fetch(bulk, { method: "POST", body: JSON.stringify(theirs) }));
  await found.page.getByRole("alert").getByText("Some of these tags were changed after you saved them.").waitFor();
  const { "sa-0": mine, "sa-1": other } = await teamsNow();
  assert.deepEqual([mine, other], ["search", "theirs"]);
  await leaveAtEveryWidth(found);
});

test("the last version in the history is undone once what moves was seen", async () => {
  const found = await visit(teams(), "acme/categories/cost_center?period=7d");
  const { page } = found;
  const before = await rules();
  const theirs = { match: { identity: { exact: ["sa-8"] } }, assign: "platform" };
  await fetch(CATEGORY, {
    method: "PUT",
    body: JSON.stringify({ document: { ...teams().categories, rules: [theirs] } }),
  });
  await found.open("acme/categories/cost_center?period=7d");
  const versions = page.getByRole("region", { name: "Table of versions" });
  assert.equal(await versions.getByRole("button", { name: "Undo" }).count(), 1);
  await versions.getByRole("button", { name: "Undo version 4" }).click();
  const dialog = page.getByRole("dialog", { name: "Undo version 4" });
  await dialog.getByRole("region", { name: "What moves" }).getByText("payments-api").waitFor();
  assert.deepEqual(await findings(page, "all"), []);
  await dialog.getByRole("button", { name: "Put version 3 back" }).click();
  await dialog.getByText("Undone: version 5 is as version 3 was.").waitFor();
  assert.deepEqual(await rules(), before);
  await page.keyboard.press("Escape");
  await versions.getByRole("button", { name: "Undo version 5" }).waitFor();
  await leaveAtEveryWidth(found);
});
