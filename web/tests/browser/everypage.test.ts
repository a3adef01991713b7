/** The states that every page has: loading, failing, failing after it had figures, and not allowed. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import {
  type Answers,
  BASE,
  close,
  findings,
  leave,
  problem,
  RECORDED,
  settled,
  WITH_CATEGORY,
  type World,
  world,
} from "./world.ts";

/** Page → the question that it cannot do without, by the name of its recorded answer, and what it shows of it. */
const PAGES: Record<string, readonly [string, RegExp]> = {
  costs: ["costs", /\$15,161\.99/],
  topics: ["topics", /\d+ topics, \$/],
  units: ["unit_costs", /GiB written: \$[\d.]+ per GiB/],
  findings: ["findings", /5 findings/],
  map: ["graph", /What the money is spent on/],
  "statement?by=category:cost_center": ["statements", /Statements of November 2026/],
  "statement?by=category:cost_center&value=payments": ["statement", /Equal to the provider’s bill/],
  rows: ["rows", /\d+ rows/],
  unowned: ["costs", /has no owner/],
  days: ["reconciliation", /Equal to the last digit|not equal/],
  "moments?from=2026-11-17T02:10:11Z": ["difference", /7 changes/],
  "categories/cost_center": ["category", /4 rules; the first that matches decides/],
  tags: ["tags", /What carries it/],
  policies: ["policies", /How costs are divided/],
  budgets: ["budgets", /more than the budget/],
  anomalies: ["anomalies", /3\.0 times the usual/],
  views: ["views", /Saved views/],
};

/** Where axe looks at a state that is the same on each page. */
const ONE = "costs";

after(close);

async function visit(path: string, answers: Answers): Promise<World> {
  const found = await world({}, { ...(path.includes("/categories") ? WITH_CATEGORY : {}), ...answers });
  await found.page.goto(BASE + path);
  return found;
}

for (const [name, [question, shown]] of Object.entries(PAGES)) {
  const path = `acme/${name}${name.includes("?") ? "&" : "?"}period=7d`;

  test(`${name} while it loads: a place for what is to come, and no figure`, async () => {
    const waiting: (() => void)[] = [];
    const found = await visit(path, {
      [question]: async (route) => {
        await new Promise<void>((resolve) => waiting.push(resolve));
        return route.fulfill({ json: RECORDED[question] });
      },
    });
    await found.page.locator(".bone").first().waitFor();
    assert.deepEqual(await findings(found.page), []);
    while (await found.page.locator(".bone").count()) {
      for (const answer of waiting.splice(0)) answer();
      await found.page.waitForTimeout(20);
    }
    await settled(found.page);
    await found.page.getByText(shown).first().waitFor();
    await leave(found);
  });

  test(`${name} when its question fails: what the service says, and another try`, async () => {
    let broken = true;
    const found = await visit(path, {
      [question]: (route) =>
        broken ? problem(route, 503, "The storage cannot be used") : route.fulfill({ json: RECORDED[question] }),
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
    const refuse: Answers[string] = (route) => route.fulfill({ status: 403, body: "<html>403 Forbidden</html>" });
    const names = Object.keys(RECORDED).filter((each) => each !== "tenants");
    const found = await visit(path, Object.fromEntries(names.map((each) => [each, refuse])));
    await found.page.getByRole("heading", { name: "You may not see this" }).first().waitFor();
    assert.ok(await found.page.getByText("HTTP 403").first().isVisible());
    assert.ok(!(await found.page.textContent("body"))?.includes("$"));
    assert.ok(await found.page.getByRole("button", { name: "acme" }).isVisible());
    if (name === ONE) assert.deepEqual(await findings(found.page, "all"), []);
    await leave(found);
  });
}

test("figures stay when asking again fails, and the page says that they are old", async () => {
  let broken = false;
  const found = await world(
    {},
    {
      costs: (route) => (broken ? problem(route, 504, "This takes too long") : route.fulfill({ json: RECORDED.costs })),
    },
  );
  await found.page.clock.install();
  await found.open("acme/costs?period=7d");
  broken = true;
  await found.page.clock.runFor(61_000);
  await found.page.getByText("the figures below are those of before").waitFor();
  assert.ok(await found.page.getByText("$15,161.99").first().isVisible());
  assert.deepEqual(await findings(found.page), []);
  broken = false;
  await found.page.clock.runFor(61_000);
  await found.page.getByText("the figures below are those of before").waitFor({ state: "detached" });
  await leave(found);
});

test("a run that is on is said on every page", async () => {
  for (const name of Object.keys(PAGES)) {
    const found = await visit(`acme/${name}?period=7d`, {
      status: (route) => route.fulfill({ json: { ...RECORDED.status, is_running: true } }),
    });
    await found.page.getByText("A run is on").first().waitFor();
    await found.close();
  }
});
