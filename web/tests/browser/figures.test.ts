/** Over the real service: the page, the API and the files say the same, digit by digit. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Locator, Page as Tab } from "playwright-core";
import type { Aggregate, Costs, Flow, GraphDiff, Issue, Page, Reconciliation, Row, Topics } from "../../src/api/shapes";
import { read, sum, type Units } from "../../src/money/money.ts";
import { ask, costsOf, exact, lines, total } from "./service.ts";
import { close, leave, settled, visit } from "./world.ts";

const PERIOD = "period=5d";
const TENANT = "tenants/acme";
/** The whole months that the period is in. */
const MONTHS = "start_date=2026-01-01&end_date=2026-02-28";
/** How a row of the file names its value of a dimension; the file has no environments. */
const COLUMNS: Record<string, (row: Record<string, string>) => string | null> = {
  "tag:team": (row) => /(?:^|;)team=([^;]*)/.exec(row.tags ?? "")?.[1] ?? "UNTAGGED",
  identity_id: (row) => row.identity_id ?? null,
  product_type: (row) => row.product_type ?? null,
  resource_id: (row) => row.resource_id ?? null,
};

after(close);

const card = (page: Tab, title: string) =>
  page.locator("section.card", { has: page.getByRole("heading", { name: title, exact: true }) });

const exact_ = (amount: Units) => exact(amount);

/** The exact values behind all rounded ones of a kind. */
const titles = (found: Locator): Promise<(string | null)[]> =>
  found.evaluateAll((all) => all.map((each) => each.getAttribute("title")));

test("the tiles are the API's totals, and those are the sums of the file", async () => {
  const costs = await costsOf("acme", `${PERIOD}&include=days,forecast`);
  const rows = await lines(`${TENANT}/chargebacks.csv?${PERIOD}`);
  const bill = await lines(`${TENANT}/billing.csv?${PERIOD}`);
  assert.ok(rows.length > 500);
  assert.equal(read(costs.total.amount), total(rows));
  assert.equal(total(bill, "total_cost"), total(rows));
  const found = await visit(`acme/costs?${PERIOD}`);
  const { page } = found;
  const tile = (title: string) => card(page, title);
  assert.equal(await page.locator(".lead").getAttribute("title"), exact(total(rows)));
  assert.deepEqual(await titles(tile("Total").locator(".ends span")), [
    exact(total(rows.filter((each) => each.cost_type === "usage"))),
    exact(total(rows.filter((each) => each.cost_type === "shared"))),
  ]);
  assert.ok(costs.total.previous);
  assert.deepEqual(await titles(tile("Total").locator(".line > span:not(.delta)")), [
    exact(read(costs.total.amount) - read(costs.total.previous)),
    exact(costs.total.previous),
  ]);
  const nobody = rows.filter((each) => each.identity_id === "UNALLOCATED");
  assert.equal(await tile("No owner").locator(".figure").getAttribute("title"), exact(total(nobody)));
  await tile("Against the bill").getByText("Equal to the last digit").waitFor();
  await leave(found);
});

for (const by of ["tag:team", "identity_id", "product_type", "resource_id", "environment_id"])
  test(`the list by ${by} is the API's, and each of its amounts is a sum of the file`, async () => {
    const costs = await costsOf("acme", `${PERIOD}&by=${by}&top=7`);
    const rows = await lines(`${TENANT}/chargebacks.csv?${PERIOD}`);
    const [list] = costs.breakdowns;
    assert.ok(list && list.items.length > 1);
    const amounts = [...list.items, ...(list.other ? [list.other] : [])].map((each) => read(each.amount));
    assert.equal(sum(amounts), total(rows));
    const column = COLUMNS[by];
    if (column)
      for (const { value, amount } of list.items)
        assert.equal(read(amount), total(rows.filter((row) => column(row) === value)), `${by} ${value}`);
    const found = await visit(`acme/costs?${PERIOD}&by=${by}`);
    assert.deepEqual(await titles(found.page.locator(".overtime .ranked .amount")), amounts.map(exact_));
    await leave(found);
  });

test("each day of the chart's table is the sum of the file's day", async () => {
  const costs = await costsOf("acme", `${PERIOD}&by=product_type&top=7`);
  const rows = await lines(`${TENANT}/chargebacks.csv?${PERIOD}`);
  const days = costs.times.map((day) => total(rows.filter((row) => row.timestamp?.startsWith(day))));
  assert.deepEqual(costs.amounts.map(read), days);
  const found = await visit(`acme/costs?${PERIOD}&by=product_type&table=1`);
  const cells = found.page.locator(".overtime tbody tr td:nth-child(2) .num");
  assert.deepEqual(await titles(cells), [...days, sum(days)].map(exact_));
  await leave(found);
});

test("cards show what changed, product by product, as the API has it", async () => {
  const costs = await costsOf("acme", `${PERIOD}&by=tag:team&by=product_type&top=7&include=issues,topics`);
  const found = await visit(`acme/costs?${PERIOD}`);
  const product = costs.breakdowns[1];
  assert.ok(product);
  const products = await titles(card(found.page, "Product").locator(".amount"));
  assert.deepEqual(
    products.slice(0, 5),
    product.items.slice(0, 5).map(({ amount }) => exact(amount)),
  );
  const topics = await titles(card(found.page, "Topics").locator(".amount"));
  assert.deepEqual(
    topics,
    costs.topics?.items.slice(0, 5).map(({ amount }) => exact(amount)),
  );
  const issues = await titles(card(found.page, "Not as the policy intends").locator("li .num"));
  assert.deepEqual(
    issues,
    costs.issues?.slice(0, 6).map(({ amount }) => exact(amount)),
  );
  await leave(found);
});

test("rows are the file's lines in its order, the first and the last", async () => {
  const rows = await lines(`${TENANT}/chargebacks.csv?${PERIOD}`);
  const found = await visit(`acme/rows?${PERIOD}`);
  const { page } = found;
  const table = page.getByRole("table");
  assert.equal(await table.getAttribute("aria-rowcount"), String(rows.length + 1));
  const shown = page.locator("tbody tr[aria-rowindex]:has(button)");
  await shown.first().waitFor();
  const first = await titles(shown.locator("td:last-child [title]"));
  assert.ok(first.length > 20);
  assert.deepEqual(
    first,
    rows.slice(0, first.length).map((row) => exact(row.amount ?? "")),
  );
  await page.getByRole("region", { name: "Table of rows" }).evaluate((box) => box.scrollTo(0, box.scrollHeight));
  await page.locator(`tr[aria-rowindex="${rows.length + 1}"]:has(button)`).waitFor();
  const last = await titles(page.locator(`tr[aria-rowindex="${rows.length + 1}"] td:last-child [title]`));
  assert.deepEqual(last, [exact(rows.at(-1)?.amount ?? "")]);
  await leave(found);
});

test("rows by amount begin with the most", async () => {
  const rows = await ask<Page<Row>>(`${TENANT}/chargebacks?${PERIOD}&sort_by=amount&sort_order=desc&page_size=20`);
  const found = await visit(`acme/rows?${PERIOD}`);
  await found.page.getByRole("link", { name: "Most first" }).click();
  const top = rows.items[0]?.amount ?? "";
  await found.page.locator(`tr[aria-rowindex="2"] td:last-child [title="${exact(top)}"]`).waitFor();
  const shown = await titles(found.page.locator("tbody tr[aria-rowindex]:has(button) td:last-child [title]"));
  assert.deepEqual(
    shown.slice(0, 20),
    rows.items.map(({ amount }) => exact(amount)),
  );
  await leave(found);
});

for (const by of ["tag:team", "identity_id", "product_type"])
  test(`the bill by ${by} is the API's and the files', month by month, to the last digit`, async () => {
    const column = COLUMNS[by];
    assert.ok(column);
    const answer = await ask<Aggregate>(`${TENANT}/chargebacks/aggregate?${MONTHS}&group_by=${by}&time_bucket=month`);
    const rows = await lines(`${TENANT}/chargebacks.csv?${MONTHS}`);
    const billed = total(await lines(`${TENANT}/billing.csv?${MONTHS}`), "total_cost");
    const months = [...new Set(answer.buckets.map((each) => each.time_bucket))].sort();
    assert.equal(months.length, 2);
    const sums = (of: typeof rows) => [
      ...months.map((month) => total(of.filter((row) => row.timestamp?.startsWith(month.slice(0, 7))))),
      total(of),
    ];
    const groups = Map.groupBy(rows, (row) => column(row) ?? "");
    const wanted = [...groups].map(([value, of]) => [value, ...sums(of)] as const);
    for (const [value, ...amounts] of wanted) {
      const of = answer.buckets.filter((each) => (each.dimensions[by] ?? "UNTAGGED") === value);
      const sent = months.map((month) => read(of.find((each) => each.time_bucket === month)?.total_amount ?? "0"));
      assert.deepEqual([...sent, sum(sent)], amounts, value);
    }
    assert.equal(read(answer.total_amount), total(rows));
    assert.equal(billed, total(rows));

    const found = await visit(`acme/bill?${PERIOD}&by=${by}`);
    const { page } = found;
    const table = page.getByRole("region", { name: "The bill" });
    const heads = await table.getByRole("columnheader").allTextContents();
    assert.deepEqual(
      heads.slice(1).map((each) => each.slice(0, 3)),
      ["Jan", "Feb", "Tot", "Sha"],
    );
    const shown = await table
      .locator("tbody tr")
      .evaluateAll(
        (all, key) =>
          all.map((row) => [
            new URL(row.querySelector("a")?.href ?? "").searchParams.get(key),
            ...[...row.querySelectorAll("td .decimals")].map((each) => each.getAttribute("title")),
          ]),
        by,
      );
    const nothing = (amount: Units) => (amount === 0n ? null : exact(amount));
    const named = (all: typeof shown) => Object.fromEntries(all.map(([value, ...amounts]) => [value, amounts]));
    assert.equal(shown.length, wanted.length);
    assert.deepEqual(named(shown), named(wanted.map(([value, ...amounts]) => [value, ...amounts.map(nothing)])));
    assert.deepEqual(await titles(table.locator("tfoot td .decimals")), sums(rows).map(exact_));
    const against = page.getByRole("region", { name: "Against the provider’s bill" });
    await against.getByText("Equal to the provider’s bill, to the last digit").waitFor();
    assert.deepEqual(await titles(against.locator("dd [title]")), [billed, total(rows), 0n].map(exact_));

    const link = await page.getByRole("link", { name: "CSV", exact: true }).getAttribute("href");
    const file = await lines(new URL(link ?? "", page.url()).href);
    assert.equal(file.length, answer.buckets.length);
    for (const [n, month] of months.entries())
      assert.equal(
        total(
          file.filter((each) => each.time_bucket === month),
          "total_amount",
        ),
        sums(rows)[n],
      );
    await leave(found);
  });

test("the file that the page offers has the rows that it shows", async () => {
  const found = await visit(`acme/rows?${PERIOD}&product_type=KAFKA_STORAGE`);
  const [download] = await Promise.all([
    found.page.waitForEvent("download"),
    found.page.getByRole("link", { name: "CSV", exact: true }).click(),
  ]);
  assert.equal(download.suggestedFilename(), "chargebacks.csv");
  const url = new URL(download.url());
  const rows = await lines(`${TENANT}/chargebacks.csv${url.search}`);
  assert.ok(rows.length > 0 && rows.every((each) => each.product_type === "KAFKA_STORAGE"));
  assert.equal(await found.page.getByRole("table").getAttribute("aria-rowcount"), String(rows.length + 1));
  await leave(found);
});

test("what has no owner is the file's UNALLOCATED, reason by reason", async () => {
  const rows = await lines(`${TENANT}/chargebacks.csv?${PERIOD}&identity_id=UNALLOCATED`);
  const costs = await costsOf("acme", `${PERIOD}&identity_id=UNALLOCATED&include=issues`);
  const issues: Issue[] = (costs.issues ?? []).filter((each) => each.unallocated);
  assert.equal(sum(issues.map((each) => read(each.amount))), total(rows));
  const found = await visit(`acme/unowned?${PERIOD}`);
  const head = found.page.getByRole("heading", { name: /has no owner/ });
  assert.equal(await head.locator(".num").getAttribute("title"), exact(total(rows)));
  const table = found.page.getByRole("region", { name: "Reasons" });
  assert.deepEqual(
    await titles(table.locator("tbody td:last-child .num")),
    issues.map(({ amount }) => exact(amount)),
  );
  await leave(found);
});

test("days are billed and charged as the two files say", async () => {
  const [rows, bill] = await Promise.all([
    lines(`${TENANT}/chargebacks.csv?${PERIOD}`),
    lines(`${TENANT}/billing.csv?${PERIOD}`),
  ]);
  const { days } = await ask<Reconciliation>(`${TENANT}/reconciliation?${PERIOD}`);
  const found = await visit(`acme/days?${PERIOD}`);
  const table = found.page.getByRole("region", { name: "Table of days" });
  const column = (number: number) => titles(table.locator(`tbody td:nth-child(${number}) .num`));
  const latestFirst = days.map((each) => each.date).reverse();
  const of = (lines: typeof rows, name: string) =>
    latestFirst.map((day) =>
      exact(
        total(
          lines.filter((row) => row.timestamp?.startsWith(day)),
          name,
        ),
      ),
    );
  assert.deepEqual(await column(3), of(bill, "total_cost"));
  assert.deepEqual(await column(4), of(rows, "amount"));
  const difference = table.locator("tbody td:nth-child(5)");
  assert.deepEqual(
    await difference.allTextContents(),
    days.map(() => "0.000000000000"),
  );
  await leave(found);
});

test("topics and the map are the API's", async () => {
  const topics = await ask<Topics>(`${TENANT}/topics?${PERIOD}&top=1000`);
  const onPage = await visit(`acme/topics?${PERIOD}`);
  const table = onPage.page.getByRole("region", { name: "Table of topics" });
  const amounts = topics.items.map(({ amount }) => exact(amount));
  assert.ok(amounts.length > 10);
  assert.deepEqual(await titles(table.locator("tbody td:last-child .num")), amounts);
  const file = await lines(`${TENANT}/topic-attributions.csv?${PERIOD}`);
  assert.equal(total(file), read(topics.total));
  await leave(onPage);

  const flow = await ask<Flow>(`${TENANT}/flow?${PERIOD}&by=environment_id&by=resource_id&by=tag:team&top=6,9,10`);
  const map = await visit(`acme/map?${PERIOD}&to=tag:team`);
  await map.page.getByText("The same as a table").click();
  const nodes = map.page.getByRole("region", { name: "Map as a table" }).locator("tbody td:last-child .num");
  assert.deepEqual(
    await titles(nodes),
    flow.nodes.map(({ amount }) => exact(amount)),
  );
  await leave(map);
});

test("the parts of the map are the API's, and sum to the costs of what they are a part of", async () => {
  const costs = await costsOf("acme", PERIOD);
  const found = await visit(`acme/map?${PERIOD}`);
  const { page } = found;
  const rows = page.getByRole("region", { name: "Map as a table" }).locator("tbody tr");
  /** The amounts of those rows that are a part of the first one. */
  const below = () =>
    rows.evaluateAll((all) => {
      const name = all[0]?.querySelector("th")?.textContent;
      const parts = all.filter((row) => row.querySelector("td")?.textContent === name);
      return parts.map((row) => row.querySelector("td:last-child .num")?.getAttribute("title"));
    });
  for (let depth = 0; ; depth++) {
    const focus = new URL(page.url()).searchParams.get("focus") ?? "";
    const graph = await ask<GraphDiff>(
      `${TENANT}/graph/diff?${PERIOD}&focus=${encodeURIComponent(focus)}&depth=1&top=100&leaves=identities`,
    );
    const [whole] = graph.nodes;
    assert.ok(whole);
    await page.locator(".as-table").evaluate((each) => each.setAttribute("open", ""));
    if (depth === 0) assert.equal(whole.after, costs.total.amount);
    assert.equal((await titles(rows.first().locator("td:last-child .num")))[0], exact(whole.after));
    const parts = (await below()).map((each) => read((each ?? "").slice(4).replace("−", "-")));
    assert.equal(sum(parts), read(whole.after));
    const into = page.getByRole("link", { name: /look into it/ }).first();
    if (!(await into.count())) break;
    const next = new URL((await into.getAttribute("href")) ?? "", page.url()).search;
    await into.click();
    await page.waitForURL((url) => url.search === next);
    await settled(page);
  }
  await leave(found);
});

test("a click is a filter, the filter is the address and the API's question, and back undoes it", async () => {
  const whole: Costs = await costsOf("acme", PERIOD);
  const found = await visit(`acme/costs?${PERIOD}`);
  const { page } = found;
  const lead = (amount: string) => page.locator(`.lead[title="${exact(amount)}"]`).waitFor();
  for (const by of ["tag:team", "identity_id", "product_type", "resource_id", "environment_id"]) {
    const costs = await costsOf("acme", `${PERIOD}&by=${by}&top=7`);
    const item = costs.breakdowns[0]?.items.find((each) => each.value !== null);
    assert.ok(item?.value);
    await found.open(`acme/costs?${PERIOD}&by=${by}`);
    const link = page.locator(".overtime .ranked a.row", { has: page.locator(`[title="${exact(item.amount)}"]`) });
    await link.first().click();
    await lead(item.amount);
    await settled(page);
    const asked = new URL(page.url()).searchParams;
    assert.deepEqual(asked.getAll(by), [item.value]);
    const filter = `${by}=${encodeURIComponent(item.value)}`;
    assert.equal((await costsOf("acme", `${PERIOD}&${filter}`)).total.amount, item.amount);
    assert.ok(
      found.asked.some((each) => each.includes("/costs?") && decodeURIComponent(each).includes(`${by}=${item.value}`)),
    );
    await page.goBack();
    await lead(whole.total.amount);
    assert.deepEqual(new URL(page.url()).searchParams.getAll(by), []);
    await page.goForward();
    await lead(item.amount);
    await page.getByRole("link", { name: /^Remove:/ }).click();
    await lead(whole.total.amount);
  }
  await leave(found);
});

test("what is left out and what is kept are the whole", async () => {
  const whole = await costsOf("acme", `${PERIOD}&by=product_type`);
  const item = whole.breakdowns[0]?.items[0];
  assert.ok(item?.value);
  const found = await visit(`acme/costs?${PERIOD}&by=product_type`);
  const rest = exact(read(whole.total.amount) - read(item.amount));
  await found.page
    .locator(".overtime .ranked li")
    .first()
    .getByRole("link", { name: /^Leave out/ })
    .click();
  await found.page.locator(`.lead[title="${rest}"]`).waitFor();
  assert.equal(new URL(found.page.url()).searchParams.get("not.product_type"), item.value);
  await leave(found);
});
