/** Cost categories: the page, its editor, and where they show on other pages. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Page, Route } from "playwright-core";
import type { Answered, Path } from "../../src/api/address";
import type { CategoryDocument } from "../../src/pages/categories/document";
import { acme, answer, type Organisation } from "./fake.ts";
import { ETAG } from "./fakepages.ts";
import {
  type Answers,
  close,
  findings,
  hasAsked,
  leaveAtEveryWidth,
  over,
  problem,
  settled,
  type World,
} from "./world.ts";

const PAGE = "acme/categories/cost_center?period=7d";
const ONE = "/cost-categories/{category_key}";
const OF = acme();
const DOCUMENT = OF.categories ?? {};

/** What the fake service answers at a path, which is what the page has to show. */
const told = <P extends Path>(_path: P, at: string, query = "period=7d") =>
  answer(OF, at, new URLSearchParams(query)) as Answered<P>;
const COVERAGE = told(`${ONE}/coverage`, "/cost-categories/cost_center/coverage");
const TOP = COVERAGE.top_unassigned;
const CENTRES = told("/costs", "/costs", "period=7d&by=category:cost_center").breakdowns[0]?.items ?? [];
/** How much of the costs another document would assign. */
function percentOf(document: CategoryDocument): string {
  const query = new URLSearchParams("period=7d&dry_run=true");
  const found = answer(OF, "/cost-categories/cost_center", query, { document }) as Answered<typeof ONE, "put">;
  assert.ok("coverage_after" in found);
  return found.coverage_after.percent ?? "";
}
const coverageWith = (document: CategoryDocument) => `Coverage ${COVERAGE.percent}% → ${percentOf(document)}%`;

after(close);

interface Sent {
  dry: boolean;
  query: URLSearchParams;
  headers: Record<string, string>;
  body: { document: CategoryDocument; reason: string | null };
}

/** A window over a tenant with a category, what was sent to change it, and the answers to changes in turn: after them,
 * every one is taken. `lint` is what a dry run finds to look at. */
async function visit(
  path: string,
  {
    of = OF,
    answers = {},
    changes = [],
    lint,
  }: { of?: Organisation; answers?: Answers; changes?: ((route: Route) => unknown)[]; lint?: object } = {},
): Promise<World & { sent: Sent[] }> {
  const sent: Sent[] = [];
  const found = await over(of, {
    [ONE]: async (route) => {
      const request = route.request();
      if (request.method() !== "PUT") return route.continue();
      const query = new URL(request.url()).searchParams;
      const dry = query.get("dry_run") === "true";
      sent.push({ dry, query, headers: request.headers(), body: request.postDataJSON() });
      const refused = dry ? undefined : changes.shift();
      if (refused) return refused(route);
      if (dry && lint) return route.fulfill({ json: { ...(await (await route.fetch()).json()), ...lint } });
      return route.continue();
    },
    ...answers,
  });
  await found.open(path);
  return { ...found, sent };
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
  let sums: Answered<"/chargebacks/aggregate"> | undefined;
  const found = await visit("acme/costs?period=7d", {
    answers: {
      "/chargebacks/aggregate": async (route, url) => {
        if (!url.searchParams.get("group_by")?.startsWith("category:")) return route.continue();
        const json: Answered<"/chargebacks/aggregate"> = await (await route.fetch()).json();
        const shared = { shared_in: "1.250000000001", shared_out: "-0.50" };
        sums = { ...json, buckets: json.buckets.map((each) => ({ ...each, ...shared })) };
        return route.fulfill({ json: sums });
      },
    },
  });
  const { page, asked } = found;
  await page.keyboard.press("g");
  await page.keyboard.press("o");
  await page.getByRole("heading", { name: "Cost categories of acme", level: 1 }).waitFor({ state: "attached" });
  await settled(page);
  assert.equal(query(page), "?period=7d");
  await page.getByText(`${COVERAGE.percent}%`).waitFor();
  assert.ok(sums);
  for (const bucket of sums.buckets) {
    const value = bucket.dimensions["category:cost_center"];
    const row = table(page, "Table of values")
      .locator("tr")
      .filter({ has: page.locator(`a[title="${value}"]`) });
    const titles = await row.locator("td .num").evaluateAll((all) => all.map((each) => each.getAttribute("title")));
    const { direct_amount, shared_in, shared_out, total_amount } = bucket;
    assert.deepEqual(
      titles.slice(0, 4),
      [direct_amount, shared_in, shared_out, total_amount].map((each) => exact(each ?? "")),
      value ?? "",
    );
  }
  const names = await table(page, "Table of values").locator("tbody th a").allTextContents();
  assert.deepEqual(names, ["Retail", "Payments", "Orders", "Search", "Platform", "Not assigned"]);
  // A rule has names once it is seen.
  for (const [n, words] of [
    [0, "identity is Service 2 sa-2"],
    [3, "(product is SUPPORT*) and (identity is No owner)"],
  ] as const) {
    const row = table(page, "Table of rules").locator("tbody tr").nth(n);
    await row.scrollIntoViewIfNeeded();
    await row.getByText(words, { exact: true }).waitFor();
  }
  const rules = await table(page, "Table of rules").locator("tbody tr").allTextContents();
  assert.match(rules[0] ?? "", /reorg-42identity is Service 2 sa-2Paymentsfrom 1 Mar 2026; CHG-42\$/);
  assert.match(rules[3] ?? "", /\(product is SUPPORT\*\) and \(identity is No owner\)Platform/);
  assert.match(rules[4] ?? "", /no ruleNot assigned/);
  const history = await table(page, "Table of versions").locator("tbody tr").allTextContents();
  assert.deepEqual(
    history.map((each) => each.slice(0, 1)),
    ["3", "2", "1"],
  );
  await hasAsked({ page, asked }, (each) => each.endsWith("/cost-categories/cost_center/coverage?period=7d"));
  const file = await page.getByRole("link", { name: "CSV of single rules" }).getAttribute("href");
  assert.ok(file?.endsWith("/tenants/acme/cost-categories/cost_center/rules.csv"));
  await leaveAtEveryWidth(found);
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
  await page.getByLabel("Identity", { exact: true }).fill("sa-2");
  await page.getByLabel("Day (without one: today)").fill("2026-11-16");
  await page.keyboard.press("Enter");
  const told = page.locator(".facts-list");
  await told.waitFor();
  assert.equal(
    await told.textContent(),
    "Value on 16 Nov 2026PaymentsBelongs toRetailRule1, reorg-42ReasonCHG-42" +
      "Later rules that would match, too3, rules[2]",
  );
  await hasAsked({ page, asked }, (each) => each.endsWith("/resolve?identity_id=sa-2&date=2026-11-16"));
  await leaveAtEveryWidth(found);
});

test("a rule is added, moved, changed and removed; what changes is shown before it is saved", async () => {
  const lint = {
    never_matching: [{ rule: { index: 2, id: "shared-pool", reason: null }, why: "its days are before all costs" }],
    overlaps: [
      {
        ...{ winner: { index: 1, id: "reorg-42", reason: null }, loser: { index: 3, id: "rules[3]", reason: null } },
        subjects: 12,
      },
    ],
  };
  const found = await visit(PAGE, { lint });
  const { page, sent } = found;
  const document = DOCUMENT;
  await edit(page);
  await addRule(page, TOP[0]?.identity_id ?? "", "orders");
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
  const [reorg, pool, tag] = document.rules ?? [];
  const wanted: CategoryDocument = {
    ...document,
    rules: [
      { match: { identity: [TOP[0]?.identity_id ?? ""] }, assign: "orders" },
      ...(reorg ? [reorg] : []),
      ...(pool ? [{ ...pool, split: { orders: "50", payments: "50" }, valid_to: "2027-01-01" }] : []),
      ...(tag ? [tag] : []),
    ],
  };
  await page.getByText(coverageWith(wanted)).waitFor();
  const values = await table(page, "Values that change").locator("tbody tr").allTextContents();
  assert.equal(values.length, 2);
  assert.match(values.find((each) => each.startsWith("Not assigned")) ?? "", /−\$/);
  assert.match(
    (await table(page, "What moves").textContent()) ?? "",
    new RegExp(`${TOP[0]?.display_name}Not assignedOrders\\$`),
  );
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
  assert.deepEqual(change?.body, { document: wanted, reason: "CHG-77" });
  assert.equal(change?.headers["if-match"], ETAG);
  assert.equal(change?.headers["if-none-match"], undefined);
  await leaveAtEveryWidth(found);
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
  await leaveAtEveryWidth(found);
});

test("somebody else was faster: it says who, shows theirs, and keeps what was typed", async () => {
  const detail =
    "Someone else was faster: version 4 was written by api at 2026-11-16T10:00:00Z. Read it again, and repeat your change.";
  const theirs = { ...told(ONE, "/cost-categories/cost_center"), version: 4, document: { ...DOCUMENT, rules: [] } };
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
  await leaveAtEveryWidth(found);
});

test("a refused document: every problem at its place, and nothing is saved", async () => {
  const errors = [
    { parameter: "document.rules[0].assign", message: "is not in the register; did you mean orders?" },
    { parameter: "document.share[0].from", message: "platform → infra → platform is a cycle" },
  ];
  const found = await visit(PAGE, {
    answers: {
      [ONE]: (route) =>
        route.request().method() === "PUT"
          ? route.fulfill({
              status: 400,
              contentType: "application/problem+json",
              json: { title: "Invalid request", status: 400, detail: "Two problems.", errors },
            })
          : route.continue(),
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
  await leaveAtEveryWidth(found);
});

test("a category is removed in the version that was seen, once what goes was told", async () => {
  const removed: { query: string; version: string | undefined }[] = [];
  const refusals = [(route: Route) => problem(route, 412, "Precondition failed", "ann wrote version 4")];
  const found = await visit(PAGE, {
    answers: {
      [ONE]: (route) => {
        const request = route.request();
        if (request.method() !== "DELETE") return route.continue();
        removed.push({ query: new URL(request.url()).search, version: request.headers()["if-match"] });
        const refused = refusals.shift();
        return refused ? refused(route) : route.fulfill({ status: 204 });
      },
      "/cost-categories": (route) => (removed.length > 1 ? route.fulfill({ json: { items: [] } }) : route.continue()),
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
  await leaveAtEveryWidth(found);
});

test("the whole document is edited as text, and a text that is none is told", async () => {
  const found = await visit(PAGE);
  const { page, sent } = found;
  await edit(page);
  await page.getByRole("button", { name: "Whole document" }).click();
  const text = page.getByLabel("The document as JSON: default, values, rules and share");
  assert.deepEqual(JSON.parse(await text.inputValue()), DOCUMENT);
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
  await table(page, "Rules to edit").getByText("not (identity is Service 1 sa-1)").waitFor();
  await page.getByText("in the document", { exact: true }).waitFor();
  await leaveAtEveryWidth(found);
});

test("without a category: what it is, and a first one from the tenant's tags", async () => {
  const none = (route: Route) => route.fulfill({ json: { items: [] } });
  const found = await visit("acme/categories?period=7d", { answers: { "/cost-categories": none } });
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
  await leaveAtEveryWidth(found);
});

test("one part that fails leaves the others where they are", async () => {
  let broken = true;
  const found = await visit("acme/costs?period=7d", {
    answers: {
      [`${ONE}/history`]: (route) => (broken ? problem(route, 404, "It is not here") : route.continue()),
    },
  });
  await found.go(PAGE);
  await found.page.getByRole("alert").getByText("It is not here").waitFor();
  await found.page.getByText(`${COVERAGE.percent}%`).waitFor();
  broken = false;
  await found.page.getByRole("button", { name: "Try again" }).click();
  await table(found.page, "Table of versions").waitFor();
  await leaveAtEveryWidth(found);
});

test("who is not assigned gets a value on the spot", async () => {
  const found = await visit(PAGE);
  const { page, sent } = found;
  await page.getByRole("button", { name: `Assign ${TOP[1]?.display_name}` }).click();
  const dialog = page.getByRole("dialog", { name: "Assign" });
  await dialog.getByLabel("Value").selectOption("orders");
  await dialog.getByLabel("From").fill("2026-11-01");
  await dialog.getByLabel("Reason").fill("They told us");
  await dialog.getByRole("button", { name: "Show what changes" }).click();
  const rule = { match: { identity: { exact: [TOP[1]?.identity_id ?? ""] } }, assign: "orders" };
  await dialog.getByText(coverageWith({ ...DOCUMENT, rules: [rule, ...(DOCUMENT.rules ?? [])] })).waitFor();
  assert.deepEqual(await findings(page), []);
  await dialog.getByRole("button", { name: "Save" }).click();
  await dialog.getByText("Saved as version 4.").waitFor();
  const change = sent.at(-1);
  assert.deepEqual(change?.body.document.rules?.[0], {
    match: { identity: { exact: [TOP[1]?.identity_id ?? ""] } },
    assign: "orders",
    valid_from: "2026-11-01",
    reason: "They told us",
  });
  assert.deepEqual(change?.body.document.rules?.slice(1), DOCUMENT.rules);
  assert.equal(change?.headers["if-match"], ETAG);
  await page.keyboard.press("Escape");
  await leaveAtEveryWidth(found);
});

test("costs begin with the first category: named, as a filter, and a level up", async () => {
  const found = await visit("acme/costs?period=7d");
  const { page, asked } = found;
  await hasAsked({ page, asked }, (each) => each.includes("/costs?period=7d&compare=previous&by=usual"));
  const list = page.locator(".overtime .ranked a.row");
  await list.filter({ hasText: "Payments" }).waitFor();
  const amounts = await page
    .locator(".overtime .ranked .amount")
    .evaluateAll((all) => all.map((each) => each.getAttribute("title")));
  assert.deepEqual(
    amounts,
    CENTRES.map((each) => exact(each.amount)),
  );
  await list.filter({ hasText: "Payments" }).click();
  await page.getByText("Cost centre is Payments", { exact: true }).waitFor();
  assert.equal(query(page), "?period=7d&category:cost_center=payments");
  await settled(page);
  await list.filter({ hasText: "Payments" }).click();
  assert.equal(query(page), "?period=7d");
  await page.getByRole("link", { name: "one level up" }).click();
  await settled(page);
  assert.equal(query(page), "?period=7d&by=category:cost_center@1");
  await hasAsked({ page, asked }, (each) => /[?&]by=category:cost_center(@|%40)1&/.test(each));
  await list.first().click();
  assert.match(query(page), /^\?period=7d&by=category:cost_center@1&category:cost_center=\w+$/);
  await settled(page);
  await page.goBack();
  await settled(page);
  await page.getByRole("link", { name: "one level down" }).click();
  await settled(page);
  await leaveAtEveryWidth(found);
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
  const found = await over({ ...OF, categories: null });
  const { page, asked } = found;
  await found.open("acme/costs?period=7d");
  assert.equal(asked.filter((each) => each.includes("/costs?")).length, 1);
  await hasAsked({ page, asked }, (each) => each.includes("/costs?period=7d&compare=previous&by=usual"));
  assert.ok(!asked.some((each) => each.includes("category:")));
  assert.equal(await page.getByRole("link", { name: "one level up" }).count(), 0);
  assert.deepEqual(found.complaints, []);
  await found.close();
});

test("why this amount: whose it is by each category, and which part", async () => {
  const parts = [
    { value: "orders", category_share: "0.4", amount: "12.980902398332" },
    { value: "payments", category_share: "0.6", amount: "19.471353597498" },
  ];
  const found = await visit("acme/rows?period=7d", {
    answers: {
      "/chargebacks": async (route) => {
        const rows: Answered<"/chargebacks"> = await (await route.fetch()).json();
        const [first, ...others] = rows.items;
        return route.fulfill({
          json: { ...rows, items: [{ ...first, categories: { cost_center: parts } }, ...others] },
        });
      },
    },
  });
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
  await leaveAtEveryWidth(found);
});
