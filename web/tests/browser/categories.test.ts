/** Cost categories: the page, its editor, and where they show on other pages. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Page, Route } from "playwright-core";
import type { CategoryDocument } from "../../src/pages/categories/document";
import {
  type Answers,
  BASE,
  close,
  ETAG,
  findings,
  hasAsked,
  overflow,
  problem,
  RECORDED,
  settled,
  WITH_CATEGORY,
  type World,
  world,
} from "./world.ts";

const PAGE = "acme/categories/cost_center?period=7d";
const TOP = RECORDED.category_coverage.top_unassigned;

after(close);

interface Sent {
  dry: boolean;
  query: URLSearchParams;
  headers: Record<string, string>;
  body: { document: CategoryDocument; reason: string | null };
}

/** A window over a tenant with a category, what was sent to change it, and the answers to changes in turn: after them,
 * every one is taken. */
async function visit(
  path: string,
  { answers = {}, changes = [] }: { answers?: Answers; changes?: ((route: Route) => unknown)[] } = {},
): Promise<World & { sent: Sent[] }> {
  const sent: Sent[] = [];
  const saved = { ...RECORDED.category, version: 4 };
  const found = await world(
    {},
    {
      ...WITH_CATEGORY,
      category: (route) => {
        const request = route.request();
        if (request.method() !== "PUT") return WITH_CATEGORY.category?.(route);
        const query = new URL(request.url()).searchParams;
        const dry = query.get("dry_run") === "true";
        sent.push({ dry, query, headers: request.headers(), body: request.postDataJSON() });
        const answer = dry ? undefined : changes.shift();
        return answer ? answer(route) : route.fulfill({ json: dry ? RECORDED.category_dry_run : saved });
      },
      ...answers,
    },
  );
  await found.open(path);
  return { ...found, sent };
}

/** Close a window in which nothing went wrong, at every width; the pictures of the pages are of both themes. */
async function leave({ page, complaints, close: end }: World): Promise<void> {
  await page.mouse.move(0, 0);
  for (const width of [1440, 360, 320]) {
    await page.setViewportSize({ width, height: 900 });
    assert.equal(await overflow(page), 0, `${width} px`);
    assert.deepEqual(await findings(page), [], `${width} px`);
  }
  assert.deepEqual(complaints, []);
  await end();
}

const exact = (text: string) =>
  `USD ${text
    .replace(/0+$/, "")
    .replace(/\.$/, ".00")
    .replace(/\.(\d)$/, ".$10")
    .replace("-", "−")}`;
const query = (page: Page) => new URL(page.url()).search;
const table = (page: Page, name: string) => page.getByRole("region", { name });
const edit = (page: Page) => page.getByRole("button", { name: "Edit", exact: true }).click();
const preview = async (page: Page) => {
  await page.getByRole("button", { name: "Show what changes" }).click();
  await page.getByText("Coverage", { exact: false }).first().waitFor();
};
const addRule = async (page: Page, identity: string, value: string) => {
  await page.getByRole("button", { name: "Add a rule" }).click();
  const form = page.getByRole("form", { name: "New rule" });
  await form.getByLabel("Which, one a line").fill(identity);
  await form.getByLabel("Value", { exact: true }).fill(value);
  await form.getByRole("button", { name: "Add the rule" }).click();
};

test("the figures are the API's, to the last digit, and the values stand below what they belong to", async () => {
  const found = await visit("acme/costs?period=7d");
  const { page, asked } = found;
  await page.keyboard.press("g");
  await page.keyboard.press("o");
  await page.getByRole("heading", { name: "Cost categories of acme", level: 1 }).waitFor({ state: "attached" });
  await settled(page);
  assert.equal(query(page), "?period=7d");
  await page.getByText(`${RECORDED.category_coverage.percent}%`).waitFor();
  for (const bucket of RECORDED.category_sums.buckets) {
    const value = bucket.dimensions["category:cost_center"];
    const row = table(page, "Table of values")
      .locator("tr")
      .filter({ has: page.locator(`a[title="${value}"]`) });
    const titles = await row.locator("td .num").evaluateAll((all) => all.map((each) => each.getAttribute("title")));
    const { direct_amount, shared_in, shared_out, total_amount } = bucket;
    assert.deepEqual(titles.slice(0, 4), [direct_amount, shared_in, shared_out, total_amount].map(exact), value);
  }
  const names = await table(page, "Table of values").locator("tbody th a").allTextContents();
  assert.deepEqual(names.slice(0, 5), ["Discovery and trust", "Search", "Fraud prevention", "Analytics", "Retail"]);
  assert.equal(names.at(-1), "Not assigned");
  const rules = await table(page, "Table of rules").locator("tbody tr").allTextContents();
  assert.match(rules[0] ?? "", /reorg-42identity is sa-57i4nzPaymentsfrom 1 Mar 2026; CHG-42\$404\.25/);
  assert.match(rules[3] ?? "", /\(product is SUPPORT\*\) and \(identity is UNALLOCATED\)Platform/);
  assert.match(rules[4] ?? "", /no ruleNot assigned/);
  const history = await table(page, "Table of versions").locator("tbody tr").allTextContents();
  assert.deepEqual(
    history.map((each) => each.slice(0, 1)),
    ["3", "2", "1"],
  );
  await hasAsked({ page, asked }, (each) => each.endsWith("/cost-categories/cost_center/coverage?period=7d"));
  const file = await page.getByRole("link", { name: "CSV of single rules" }).getAttribute("href");
  assert.ok(file?.endsWith("/tenants/acme/cost-categories/cost_center/rules.csv"));
  await leave(found);
});

test("a value leads to its costs, and Back leads here again", async () => {
  const { page, complaints, close: end } = await visit(PAGE);
  await page.getByRole("link", { name: "Retail", exact: true }).click();
  await settled(page);
  assert.equal(query(page), "?period=7d&category:cost_center=retail");
  await page.getByText("Cost centre is Retail", { exact: true }).waitFor();
  await page.goBack();
  await page.getByRole("region", { name: "Table of values" }).waitFor();
  assert.deepEqual(complaints, []);
  await end();
});

test("the tester says the value, what it belongs to, the rule, and the rules that lost", async () => {
  const found = await visit(PAGE);
  const { page, asked } = found;
  await page.getByLabel("Identity", { exact: true }).fill("sa-57i4nz");
  await page.getByLabel("Day (without one: today)").fill("2026-11-16");
  await page.keyboard.press("Enter");
  const told = page.locator(".facts-list");
  await told.waitFor();
  assert.equal(
    await told.textContent(),
    "Value on 16 Nov 2026PaymentsBelongs toRetailRule1, reorg-42ReasonCHG-42" +
      "Later rules that would match, too3, rules[2]",
  );
  await hasAsked({ page, asked }, (each) => each.endsWith("/resolve?identity_id=sa-57i4nz&date=2026-11-16"));
  await leave(found);
});

test("a rule is added, moved, changed and removed; what changes is shown before it is saved", async () => {
  const found = await visit(PAGE);
  const { page, sent } = found;
  const { document } = RECORDED.category;
  await edit(page);
  await addRule(page, TOP[0].identity_id, "orders");
  const rules = table(page, "Rules to edit");
  await rules.getByRole("button", { name: "Down rule 1", exact: true }).click();
  assert.match((await rules.locator("tbody tr").first().textContent()) ?? "", /reorg-42/);
  await rules.getByRole("button", { name: "Up rule 2", exact: true }).click();
  await rules.getByRole("button", { name: "Remove rule 5, support" }).click();
  await rules.getByRole("button", { name: "Change rule 3, shared-pool" }).click();
  const form = page.getByRole("form", { name: "Change the rule" });
  assert.equal(await form.getByLabel("Last day").inputValue(), "2026-09-30");
  await form.getByLabel("Last day").fill("2026-12-31");
  await form.getByLabel("Percent 1").fill("50");
  await form.getByLabel("Percent 2").fill("50");
  assert.deepEqual(await findings(page, "all"), []);
  await form.getByRole("button", { name: "Change the rule" }).click();
  await preview(page);
  await page.getByText("Coverage 87.86% → 89.89%").waitFor();
  const values = await table(page, "Values that change").locator("tbody tr").allTextContents();
  assert.equal(values.length, 2);
  assert.match(values[0] ?? "", /Not assigned.*−\$308\.32/);
  assert.match((await table(page, "What moves").textContent()) ?? "", /Ada MoreauNot assignedOrders\$308\.32/);
  const look = page.getByRole("region", { name: "Rules to look at" });
  assert.match((await look.textContent()) ?? "", /shared-pool matches nothing: its days are before all costs/);
  assert.match((await look.textContent()) ?? "", /reorg-42 wins over rules\[3\] for 12 combinations/);
  await page.getByLabel("Reason of the change").fill("CHG-77");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByRole("region", { name: "Table of values" }).waitFor();
  const [trial, change] = sent;
  assert.deepEqual(
    sent.map((each) => each.dry),
    [true, false],
  );
  assert.equal(trial?.query.toString(), "period=7d&dry_run=true");
  const [reorg, pool, tag] = document.rules;
  const wanted = {
    ...document,
    rules: [
      { match: { identity: [TOP[0].identity_id] }, assign: "orders" },
      reorg,
      { ...pool, split: { orders: "50", payments: "50" }, valid_to: "2027-01-01" },
      tag,
    ],
  };
  assert.deepEqual(change?.body, { document: wanted, reason: "CHG-77" });
  assert.equal(change?.headers["if-match"], ETAG);
  assert.equal(change?.headers["if-none-match"], undefined);
  await leave(found);
});

test("the editor works by keys alone", async () => {
  const found = await visit(PAGE);
  const { page, sent } = found;
  const press = async (name: string | RegExp) => {
    await page.getByRole("button", { name, exact: typeof name === "string" }).focus();
    await page.keyboard.press("Enter");
  };
  await press("Edit");
  await press("Add a rule");
  const kind = page.getByLabel("What it looks at");
  await kind.focus();
  await page.keyboard.press("t");
  assert.equal(await kind.inputValue(), "topic");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  await page.keyboard.type("pay.*");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  await page.keyboard.type("payments");
  await page.keyboard.press("Enter");
  await press("Show what changes");
  await page.getByLabel("Reason of the change").focus();
  await page.keyboard.type("because");
  await page.keyboard.press("Enter");
  await page.getByRole("region", { name: "Table of values" }).waitFor();
  assert.deepEqual(sent.at(-1)?.body.document.rules?.[0], { match: { topic: ["pay.*"] }, assign: "payments" });
  assert.equal(sent.at(-1)?.body.reason, "because");
  await leave(found);
});

test("somebody else was faster: it says who, shows theirs, and keeps what was typed", async () => {
  const detail =
    "Someone else was faster: version 4 was written by api at 2026-11-16T10:00:00Z. Read it again, and repeat your change.";
  const theirs = { ...RECORDED.category, version: 4, document: { ...RECORDED.category.document, rules: [] } };
  let faster = false;
  const found = await visit(PAGE, {
    changes: [
      (route) => {
        faster = true;
        return problem(route, 412, "Someone else was faster", detail);
      },
    ],
  });
  const { page, sent } = found;
  await page.route(/\/cost-categories\/cost_center$/, (route) =>
    faster && route.request().method() === "GET"
      ? route.fulfill({ json: theirs, headers: { ETag: '"4-fedcba9876543210"' } })
      : route.fallback(),
  );
  await edit(page);
  await addRule(page, "sa-mine", "orders");
  await preview(page);
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByRole("alert").getByText(detail).waitFor();
  assert.deepEqual(await findings(page, "all"), []);
  await page.getByRole("button", { name: "Load theirs, keep mine" }).click();
  await page.getByText("What you see is version 4. Your own document is kept.").waitFor();
  await page.getByText("There are no rules: everything is not assigned.").waitFor();
  await page.getByRole("button", { name: "Swap with your own" }).click();
  await table(page, "Rules to edit").getByText("identity is sa-mine").waitFor();
  await preview(page);
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.getByRole("region", { name: "Table of versions" }).waitFor();
  assert.equal(sent.at(-1)?.headers["if-match"], '"4-fedcba9876543210"');
  assert.deepEqual(sent.at(-1)?.body.document.rules?.[0]?.match, { identity: ["sa-mine"] });
  await leave(found);
});

test("a refused document: every problem at its place, and nothing is saved", async () => {
  const errors = [
    { parameter: "document.rules[0].assign", message: "is not in the register; did you mean orders?" },
    { parameter: "document.share[0].from", message: "platform → infra → platform is a cycle" },
  ];
  const found = await visit(PAGE, {
    answers: {
      category: (route) =>
        route.request().method() === "PUT"
          ? route.fulfill({
              status: 400,
              contentType: "application/problem+json",
              json: { title: "Invalid request", status: 400, detail: "Two problems.", errors },
            })
          : WITH_CATEGORY.category?.(route),
    },
  });
  const { page } = found;
  await edit(page);
  await addRule(page, "sa-1", "order");
  await page.getByRole("button", { name: "Show what changes" }).click();
  await page.getByText("The document is refused.").waitFor();
  await table(page, "Rules to edit").locator("tbody tr").first().getByText("did you mean orders?").waitFor();
  await page.getByText("share[0].from: platform → infra → platform is a cycle").waitFor();
  assert.equal(await page.getByRole("button", { name: "Save", exact: true }).count(), 0);
  await leave(found);
});

test("a category is removed in the version that was seen, once what goes was told", async () => {
  const removed: { query: string; version: string | undefined }[] = [];
  const refusals = [(route: Route) => problem(route, 412, "Precondition failed", "ann wrote version 4")];
  const found = await visit(PAGE, {
    answers: {
      category: (route) => {
        const request = route.request();
        if (request.method() !== "DELETE") return WITH_CATEGORY.category?.(route);
        removed.push({ query: new URL(request.url()).search, version: request.headers()["if-match"] });
        const refused = refusals.shift();
        return refused ? refused(route) : route.fulfill({ status: 204 });
      },
      categories: (route) => route.fulfill({ json: removed.length > 1 ? RECORDED.categories : RECORDED.category_list }),
    },
  });
  const { page } = found;
  await page.getByRole("button", { name: "Remove", exact: true }).click();
  const dialog = page.getByRole("dialog", { name: "Remove Cost centre" });
  assert.match((await dialog.textContent()) ?? "", /Costs stay as they are\. The 3 versions stay in the history/);
  assert.deepEqual(await findings(page), []);
  await dialog.getByLabel("Reason").fill("CHG-9");
  await dialog.getByRole("button", { name: "Remove Cost centre" }).click();
  await dialog.getByText("ann wrote version 4").waitFor();
  await dialog.getByRole("button", { name: "Remove Cost centre" }).click();
  await dialog.waitFor({ state: "detached" });
  await settled(page);
  assert.equal(new URL(page.url()).pathname.split("/").at(-1), "categories");
  assert.deepEqual(removed, [
    { query: "?reason=CHG-9", version: ETAG },
    { query: "?reason=CHG-9", version: ETAG },
  ]);
  await leave(found);
});

test("the whole document is edited as text, and a text that is none is told", async () => {
  const found = await visit(PAGE);
  const { page, sent } = found;
  await edit(page);
  await page.getByRole("button", { name: "Whole document" }).click();
  const text = page.getByLabel("The document as JSON: default, values, rules and share");
  assert.deepEqual(JSON.parse(await text.inputValue()), RECORDED.category.document);
  await text.fill('{"rules": [');
  await page.getByRole("button", { name: "Show what changes" }).click();
  await page.getByRole("alert").getByText("This is not JSON").waitFor();
  await text.fill('{"rules": [1]}');
  await page.getByRole("button", { name: "Rules", exact: true }).click();
  await page.getByRole("alert").getByText("a list of objects that each have a match").waitFor();
  assert.equal(sent.length, 0);
  const document = { rules: [{ match: { not: { identity: ["sa-1"] } }, assign: "others" }] };
  await text.fill(JSON.stringify(document));
  await preview(page);
  assert.deepEqual(sent[0]?.body.document, document);
  await page.getByRole("button", { name: "Rules", exact: true }).click();
  await table(page, "Rules to edit").getByText("not (identity is sa-1)").waitFor();
  await page.getByText("in the document", { exact: true }).waitFor();
  await leave(found);
});

test("without a category: what it is, and a first one from the tenant's tags", async () => {
  const none = (route: Route) => route.fulfill({ json: RECORDED.categories });
  const found = await visit("acme/categories?period=7d", { answers: { categories: none } });
  const { page, sent } = found;
  await page.getByText("A cost category says who really pays").waitFor();
  assert.deepEqual(await findings(page, "all"), []);
  await page.getByRole("button", { name: "Begin with the tag team" }).click();
  assert.equal(await page.getByLabel("Key of the category").inputValue(), "team");
  await page.getByLabel("Key of the category").fill("cost_center");
  await preview(page);
  await page.getByRole("button", { name: "Save", exact: true }).click();
  await page.waitForURL(/\/acme\/categories\/cost_center\?period=7d$/);
  const change = sent.at(-1);
  assert.deepEqual(change?.body, {
    document: { rules: [{ match: { tag: { key: "team" } }, assign: { from_tag: "team" } }] },
    reason: null,
  });
  assert.equal(change?.headers["if-none-match"], "*");
  await settled(page);
  await leave(found);
});

test("one part that fails leaves the others where they are", async () => {
  let broken = true;
  const found = await world(
    {},
    {
      ...WITH_CATEGORY,
      category_history: (route) =>
        broken ? problem(route, 404, "It is not here") : route.fulfill({ json: RECORDED.category_history }),
    },
  );
  await found.page.goto(BASE + PAGE);
  await found.page.getByRole("alert").getByText("It is not here").waitFor();
  await found.page.getByText(`${RECORDED.category_coverage.percent}%`).waitFor();
  broken = false;
  await found.page.getByRole("button", { name: "Try again" }).click();
  await table(found.page, "Table of versions").waitFor();
  await leave(found);
});

test("who is not assigned gets a value on the spot", async () => {
  const found = await visit(PAGE);
  const { page, sent } = found;
  await page.getByRole("button", { name: `Assign ${TOP[1].display_name}` }).click();
  const dialog = page.getByRole("dialog", { name: "Assign" });
  await dialog.getByLabel("Value").fill("orders");
  await dialog.getByLabel("From").fill("2026-11-01");
  await dialog.getByLabel("Reason").fill("They told us");
  await dialog.getByRole("button", { name: "Show what changes" }).click();
  await dialog.getByText("Coverage 87.86% → 89.89%").waitFor();
  assert.deepEqual(await findings(page), []);
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.getByText("Saved as version 4.").waitFor();
  const change = sent.at(-1);
  assert.deepEqual(change?.body.document.rules?.[0], {
    match: { identity: { exact: [TOP[1].identity_id] } },
    assign: "orders",
    valid_from: "2026-11-01",
    reason: "They told us",
  });
  assert.deepEqual(change?.body.document.rules?.slice(1), RECORDED.category.document.rules);
  assert.equal(change?.headers["if-match"], ETAG);
  await page.keyboard.press("Escape");
  await leave(found);
});

test("what has no owner and what is not assigned is one list, and several of it get a value at once", async () => {
  const found = await visit("acme/unowned?period=7d");
  const { page, sent } = found;
  const card = page.getByRole("region", { name: "To be assigned", exact: true });
  const amounts = (await card.locator("tbody .num").allTextContents()).map((each) => Number(each.replace(/[$,]/g, "")));
  assert.ok(amounts.length > 2);
  assert.deepEqual(
    amounts,
    [...amounts].sort((a, b) => b - a),
  );
  const { items } = RECORDED.costs.breakdowns.find((each: { by: string }) => each.by === "resource_id");
  const [first, second] = items;
  const someone = TOP.find((each: { identity_id: string }) => each.identity_id !== "UNALLOCATED");
  for (const each of [first.name, second.name, someone.display_name])
    await card.getByRole("checkbox", { name: each }).check();
  await card.getByText("3 things chosen:").waitFor();
  assert.deepEqual(await findings(page), []);
  await card.getByLabel("Value").fill("platform");
  await card.getByRole("button", { name: "Show what changes" }).click();
  await card.getByRole("button", { name: "Save" }).click();
  await card.getByText("Saved as version 4.").waitFor();
  const rules = sent.at(-1)?.body.document.rules ?? [];
  assert.deepEqual(
    [...rules.slice(0, 2)].sort((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b))),
    [
      {
        match: { all: [{ identity: ["UNALLOCATED"] }, { resource: { exact: [first.value, second.value] } }] },
        assign: "platform",
      },
      { match: { identity: { exact: [someone.identity_id] } }, assign: "platform" },
    ],
  );
  assert.deepEqual(rules.slice(2), RECORDED.category.document.rules);
  await leave(found);
});

test("costs begin with the first category: named, as a filter, and a level up", async () => {
  const found = await visit("acme/costs?period=7d");
  const { page, asked } = found;
  const dimensions = ["category:cost_center", "tag:team", "identity_id", "environment_id", "product_type"];
  const by = [...dimensions, "resource_id"].map((each) => `by=${each}`).join("&");
  await hasAsked({ page, asked }, (each) =>
    each.includes(`/costs?period=7d&compare=previous&${by}&series=category:cost_center`),
  );
  const list = page.locator(".overtime .ranked a.row");
  await list.filter({ hasText: "Fraud prevention" }).waitFor();
  const amounts = await page
    .locator(".overtime .ranked .amount")
    .evaluateAll((all) => all.map((each) => each.getAttribute("title")));
  const { items } = RECORDED.category_breakdown;
  assert.deepEqual(
    amounts.slice(0, 7),
    items.slice(0, 7).map((each: { amount: string }) => exact(each.amount)),
  );
  await list.filter({ hasText: "Fraud prevention" }).click();
  await page.getByText("Cost centre is Fraud prevention", { exact: true }).waitFor();
  assert.equal(query(page), "?period=7d&category:cost_center=fraud");
  await settled(page);
  await list.filter({ hasText: "Fraud prevention" }).click();
  assert.equal(query(page), "?period=7d");
  await page.getByRole("link", { name: "one level up" }).click();
  await settled(page);
  assert.equal(query(page), "?period=7d&by=category:cost_center@1");
  await hasAsked({ page, asked }, (each) => /[?&]by=category:cost_center(@|%40)1&/.test(each));
  await list.first().click();
  assert.match(query(page), /^\?period=7d&by=category:cost_center@1&category:cost_center=\w+$/);
  await settled(page);
  await page.getByRole("link", { name: "one level down" }).click();
  await settled(page);
  await leave(found);
});

test("the filter menu knows categories and what their values are called", async () => {
  const { page, complaints, close: end } = await visit("acme/rows?period=7d");
  await page.keyboard.press("f");
  await page.getByRole("option", { name: "Cost centre" }).waitFor();
  await page.waitForFunction(() => document.activeElement?.getAttribute("role") === "combobox");
  await page.keyboard.type("cost centre");
  await page.keyboard.press("Enter");
  await page.getByRole("option", { name: /Payments/ }).waitFor();
  await page.keyboard.type("paym");
  await page.keyboard.press("Enter");
  await page.getByText("Cost centre is Payments", { exact: true }).waitFor();
  assert.equal(query(page), "?period=7d&category:cost_center=payments");
  assert.deepEqual(complaints, []);
  await end();
});

test("a tenant without categories is asked what it always was", async () => {
  const { page, asked, complaints, close: end } = await world();
  await page.goto(`${BASE}acme/costs?period=7d`);
  await settled(page);
  const by = ["tag:team", "identity_id", "environment_id", "product_type", "resource_id"];
  const wanted = `/costs?period=7d&compare=previous&${by.map((each) => `by=${each}`).join("&")}&series=tag:team&`;
  assert.equal(asked.filter((each) => each.includes("/costs?")).length, 1);
  await hasAsked({ page, asked }, (each) => each.includes(wanted));
  assert.ok(!asked.some((each) => each.includes("category:")));
  assert.equal(await page.getByRole("link", { name: "one level up" }).count(), 0);
  assert.deepEqual(complaints, []);
  await end();
});

test("why this amount: whose it is by each category, and which part", async () => {
  const [first, ...others] = RECORDED.rows.items;
  const parts = [
    { value: "orders", category_share: "0.4", amount: "12.980902398332" },
    { value: "payments", category_share: "0.6", amount: "19.471353597498" },
  ];
  const rows = { ...RECORDED.rows, items: [{ ...first, categories: { cost_center: parts } }, ...others] };
  const found = await visit("acme/rows?period=7d", { answers: { rows: (route) => route.fulfill({ json: rows }) } });
  const { page } = found;
  await page
    .getByRole("button", { name: /why this amount/ })
    .first()
    .click();
  const told = page.getByRole("dialog", { name: "Why this amount?" }).getByRole("region", { name: /Values by cost/ });
  await told.getByRole("link", { name: "Payments", exact: true }).waitFor();
  assert.deepEqual(await told.locator("tbody tr").allTextContents(), [
    "Cost centreOrders0.412.980902398332",
    "Cost centrePayments0.619.471353597498",
  ]);
  await leave(found);
});
