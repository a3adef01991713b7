/** The states that every page has: loading, failing, failing after it had figures, and not allowed. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Route } from "playwright-core";
import type { Path } from "../../src/api/address";
import { acme } from "./fake.ts";
import { type Answers, BASE, close, findings, leave, over, problem, settled, type World } from "./world.ts";

/** Page → the question that it cannot do without, and what it shows of its answer. */
const PAGES: Record<string, readonly [Path, RegExp]> = {
  costs: ["/costs", /\$[\d,]+\.\d\d/],
  topics: ["/topics", /\d+ topics, \$/],
  units: ["/unit-costs", /GiB written: \$[\d.]+ per GiB/],
  findings: ["/findings", /3 findings/],
  map: ["/graph/diff", /What the money is spent on/],
  "statement?by=category:cost_center": ["/statements", /Statements of November 2026/],
  "statement?by=category:cost_center&value=payments": ["/statement", /Equal to the provider’s bill/],
  rows: ["/chargebacks", /\d+ rows/],
  unowned: ["/costs", /has no owner/],
  days: ["/reconciliation", /Equal to the last digit|not equal/],
  "moments?from=2026-11-17T02:10:11Z": ["/chargebacks/diff", /\d+ changes/],
  "categories/cost_center": ["/cost-categories/{category_key}", /4 rules; the first that matches decides/],
  tags: ["/tags", /What carries it/],
  policies: ["/policies", /How costs are divided/],
  budgets: ["/budgets", /more than the budget/],
  anomalies: ["/anomalies", /3\.0 times the usual/],
  views: ["/views", /Saved views/],
};

/** Where axe looks at a state that is the same on each page. */
const ONE = "costs";

after(close);

async function visit(path: string, answers: Answers): Promise<World> {
  const found = await over(acme(), answers);
  await found.page.goto(BASE + path);
  return found;
}

for (const [name, [question, shown]] of Object.entries(PAGES)) {
  const path = `acme/${name}${name.includes("?") ? "&" : "?"}period=7d`;

  test(`${name} while it loads: a place for what is to come, and no figure`, async () => {
    const { promise, resolve: answer } = Promise.withResolvers<void>();
    const found = await visit(path, { [question]: (route: Route) => promise.then(() => route.fallback()) });
    await found.page.locator(".bone").first().waitFor();
    if (name === ONE) assert.deepEqual(await findings(found.page), []);
    answer();
    await settled(found.page);
    await found.page.getByText(shown).first().waitFor();
    await leave(found);
  });

  test(`${name} when its question fails: what the service says, and another try`, async () => {
    let broken = true;
    const found = await visit(path, {
      [question]: (route: Route) => (broken ? problem(route, 503, "The storage cannot be used") : route.fallback()),
    });
    const alert = found.page.getByRole("alert").filter({ hasText: "The storage cannot be used" });
    await alert.first().waitFor();
    assert.match((await alert.first().textContent()) ?? "", /Because of this test\..*HTTP 503/);
    if (name === ONE) assert.deepEqual(await findings(found.page, "all"), []);
    // The page also tries again by itself: were the service well before the click, the button might be gone already.
    await alert.first().getByRole("button", { name: "Try again" }).click();
    broken = false;
    await found.page.getByText(shown).first().waitFor();
    await leave(found);
  });

  test(`${name} of a tenant that is not the reader's: not allowed, asked once, and nothing of it`, async () => {
    const found = await over(acme());
    await found.page.route("**/api/v1/{me,tenants/acme,tenants/acme/**}", (route) =>
      route.fulfill({ status: 403, body: "<html>403 Forbidden</html>" }),
    );
    await found.page.goto(BASE + path);
    await found.page.getByRole("heading", { name: "You may not see this" }).first().waitFor();
    await found.page.getByText("HTTP 403").first().waitFor();
    assert.ok(!(await found.page.textContent("body"))?.includes("$"));
    await found.page.getByRole("button", { name: "acme" }).waitFor();
    if (name === ONE) assert.deepEqual(await findings(found.page, "all"), []);
    await leave(found);
  });
}

test("figures stay when asking again fails, and the page says that they are old", async () => {
  let broken = false;
  const found = await over(
    acme(),
    {
      "/costs": (route) => (broken ? problem(route, 504, "This takes too long") : route.fallback()),
    },
    {},
  );
  await found.page.clock.install();
  await found.open("acme/costs?period=7d");
  const figure = await found.page.locator(".lead").innerText();
  broken = true;
  await found.page.clock.runFor(61_000);
  await found.page.getByText("the figures below are those of before").waitFor();
  assert.equal(await found.page.locator(".lead").innerText(), figure);
  assert.deepEqual(await findings(found.page), []);
  broken = false;
  await found.page.clock.runFor(61_000);
  await found.page.getByText("the figures below are those of before").waitFor({ state: "detached" });
  await leave(found);
});

test("a run that is on is said on every page", async () => {
  const found = await over({ ...acme(), isRunning: true });
  await found.open("acme/views");
  for (const name of Object.keys(PAGES)) {
    await found.go(`acme/${name}${name.includes("?") ? "&" : "?"}period=7d`);
    await found.page.getByText("A run is on").first().waitFor();
  }
  await leave(found);
});
