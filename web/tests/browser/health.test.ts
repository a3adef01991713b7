/** Health: what is wrong and what ends it, and the way of a new tenant to its first costs. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { type Organisation, organisation } from "./fake.ts";
import { pictures } from "./picture.ts";
import { become, close, findings, leave, over, overflow, problem, reader } from "./world.ts";

after(close);

/** A tenant of which no day is calculated. */
const fresh = (more: Partial<Organisation> = {}): Organisation => ({ ...organisation(), last: null, ...more });
/** A run in one of its stages. */
const runs = (stage: string, done: number) => ({
  isRunning: true,
  progress: { stage, date: null, done, total: 35, is_cancelled: false },
});
const steps = async (page: Page) => {
  await page.getByRole("heading", { name: "No day is calculated yet" }).waitFor();
  const all = page.getByRole("list", { name: "Steps to the first costs" }).getByRole("listitem");
  await all.first().waitFor();
  return (await all.allInnerTexts()).map((each) => each.replace(/\s+/g, " "));
};
const READ = "Configuration done read; days of up to 35 days ago are fetched";
const FOUND = [
  "Access to the source done accepted",
  "Resources and identities done 3 resources and 5 identities are found",
];

test("first run: a refused key is said on every page, with the answer of the source and what to do, and no figure", async () => {
  const bill = { days: 0, error: "HTTP 401: unknown key" };
  const found = await over({ ...organisation(0), last: null, sources: { bill }, errors: ["gathering failed"] });
  const { page } = found;
  for (const name of ["costs", "days", "unowned", "findings", "bill", "topics", "map", "rows"]) {
    await found.open(`acme/${name}`);
    assert.deepEqual(await steps(page), [
      READ,
      "Access to the source failed refused: HTTP 401: unknown key Correct its key.",
      "Resources and identities waiting",
      "Bill waiting",
      "Usage waiting",
      "First costs waiting",
    ]);
    assert.doesNotMatch(
      await page.locator("main").innerText(),
      /\$|Everything has|Nothing unused|Nothing is wrong/,
      name,
    );
  }
  for (const width of [1440, 360]) {
    await page.setViewportSize({ width, height: 900 });
    assert.equal(await overflow(page), 0, `${width} px`);
    assert.deepEqual(await findings(page, "all"), []);
  }
  await found.open("acme/days");
  await pictures(page, "first-run-refused");
  await leave(found);
});

test("without a network or a service the page says so once, and each card keeps what it had, dimmed", async () => {
  let [isDown, isRunsDown, isProxyAlone] = [false, false, false];
  const found = await over(organisation(), {}, {});
  const { page } = found;
  await page.route("**/api/v1/**", (route) => {
    if (isDown || (isRunsDown && /\/runs\?/.test(route.request().url()))) return route.abort("connectionrefused");
    if (isProxyAlone) return route.fulfill({ status: 502, contentType: "text/html", body: "<h1>Bad Gateway</h1>" });
    return route.fallback();
  });
  await page.clock.install();
  await found.open("acme/days?period=7d");
  const alerts = page.getByRole("alert");
  const dimmed = page.locator(".stale");
  /** Wait until all four answers of the page are old. */
  const all = () => page.waitForFunction(() => document.querySelectorAll("main .stale").length === 4);
  const cards = await page.locator("main .card").count();
  await page.getByRole("row", { name: "team-chat Chat budgets that are reached" }).waitFor();
  // A card that alone gets no answer says so itself.
  isRunsDown = true;
  await page.clock.runFor(61_000);
  await page.locator(".card").filter({ hasText: "Runs" }).getByRole("alert").first().waitFor();
  assert.deepEqual([await alerts.count(), await dimmed.count()], [1, 1]);
  isDown = true;
  await page.clock.runFor(61_000);
  await all();
  await alerts.getByText("The service cannot be reached").waitFor();
  assert.equal(await alerts.count(), 1);
  await alerts.getByText("the figures below are those of before").waitFor();
  assert.equal(await page.locator("main .card:not(.problem)").count(), cards);
  assert.deepEqual(await findings(page), []);
  [isDown, isRunsDown, isProxyAlone] = [false, false, true];
  await page.getByRole("button", { name: "Try again" }).click();
  await alerts.getByText("HTTP 502").waitFor();
  await alerts.getByText("The service cannot be reached").waitFor();
  assert.equal(await alerts.count(), 1);
  isProxyAlone = false;
  await page.getByRole("button", { name: "Try again" }).click();
  await alerts.waitFor({ state: "detached" });
  await dimmed.first().waitFor({ state: "detached" });
  await page.context().setOffline(true);
  await page.getByText("You are offline").waitFor();
  await page.clock.runFor(61_000);
  await all();
  assert.equal(await alerts.count(), 1);
  // What is behind a dialog does not count.
  await page
    .getByRole("button", { name: /^Revision/ })
    .first()
    .click();
  await page.getByRole("dialog").getByText("You are offline").waitFor();
  await page.getByRole("button", { name: "Close" }).click();
  // A page that was not opened before has no figures yet.
  await page.getByRole("navigation", { name: "Places" }).getByRole("link", { name: "Bill" }).click();
  await page.getByRole("heading", { name: "Bill" }).first().waitFor();
  assert.equal(await alerts.count(), 1);
  await page.context().setOffline(false);
  await alerts.waitFor({ state: "detached" });
  await leave(found);
});

test("first run: metrics that are refused hold up the costs, and nothing before them", async () => {
  const [days, error] = [35, "HTTP 401: bad password"];
  const sources = { bill: { days }, inventory: { days }, metrics: { days: 0, error } };
  const found = await over(fresh({ sources, errors: [`35 days: metrics unavailable: ${error}`] }));
  await found.open("acme/costs");
  assert.deepEqual(await steps(found.page), [
    ...[READ, ...FOUND, "Bill done 35 days are read"],
    "Usage failed refused: HTTP 401: bad password Correct its key.",
    "First costs waiting",
  ]);
  await found.page.getByText("4 of 6 steps are done.").waitFor();
  await found.page.setViewportSize({ width: 360, height: 800 });
  assert.deepEqual(await findings(found.page, "all"), []);
  await leave(found);
});

test("first run: the list follows the run by itself, and gives its place to the first costs", async () => {
  const found = await over(fresh(runs("gathering", 12)), {}, {});
  const { page } = found;
  await page.clock.install();
  await found.open("acme/costs");
  assert.deepEqual((await steps(page)).slice(1), [
    ...FOUND,
    "Bill running 12 of 35 days",
    "Usage waiting",
    "First costs waiting",
  ]);
  assert.deepEqual(await findings(page, "all"), []);
  await pictures(page, "first-run");
  become(fresh({ ...runs("calculating", 3), sources: { bill: { days: 35 }, inventory: { days: 35 } } }));
  await page.clock.runFor(6_000);
  await page.getByText("3 of 35 days", { exact: true }).waitFor();
  assert.deepEqual((await steps(page)).slice(3), [
    "Bill done 35 days are read",
    "Usage running",
    "First costs running 3 of 35 days",
  ]);
  become({ ...organisation(), ...runs("calculating", 16) });
  await page.clock.runFor(6_000);
  await page.locator(".lead").waitFor();
  assert.equal(await page.getByText("No day is calculated yet").count(), 0);
  await leave(found);
});

test("first run: who sees a part of the bill is told that nothing is there, and not how the runs went", async () => {
  const me = reader(["read"], { "tag:team": ["payments"] });
  const found = await over(fresh({ me, errors: ["gathering failed: HTTP 401"] }));
  await found.open("acme/costs");
  await found.page.getByRole("heading", { name: "No day is calculated yet" }).waitFor();
  assert.doesNotMatch(await found.page.locator("main").innerText(), /401|Access/);
  assert.deepEqual(
    found.asked.filter((each) => each.endsWith("/health")),
    [],
  );
  await leave(found);
});

const PENDING = { "2026-11-03": "12.00", "2026-11-17": "644.00", "2026-11-18": "500.00" };

test("all pending days are recalculated by one run, after one question, and the run is followed to its end", async () => {
  const of = { ...organisation(), pending: PENDING, refused: ["2026-11-18"], errors: ["no metrics"] };
  const found = await over(of, {}, {});
  const { page } = found;
  await page.clock.install();
  const sent: unknown[] = [];
  await page.route("**/pipeline/run", (route) => {
    sent.push(route.request().postDataJSON());
    become({ ...of, ...runs("calculating", 0) });
    return route.fulfill({ status: 202, json: { status: "started" } });
  });
  await found.open("acme/days?period=7d");
  await page.getByText("2 days, 3 Nov – 17 Nov 2026", { exact: true }).waitFor();
  const apart = page.locator(".problems > li").filter({ hasText: "18 Nov 2026" });
  assert.match(await apart.innerText(), /Recalculating does not help\. Correct its key\./);
  await pictures(page, "pending");
  await page.getByRole("button", { name: "Recalculate all pending …" }).click();
  const dialog = page.getByRole("dialog", { name: "Recalculate all pending" });
  await dialog.getByText("1 more day is not counted").waitFor();
  for (const width of [1440, 360]) {
    await page.setViewportSize({ width, height: 900 });
    assert.equal(await overflow(page), 0, `${width} px`);
    assert.deepEqual(await findings(page, "all"), []);
  }
  await pictures(page, "pending-recalculated");
  assert.deepEqual(sent, []);
  await dialog.getByRole("button", { name: "Recalculate 2 days" }).click();
  await dialog.getByText("The run is on: calculating, 0 of 35 days.").waitFor();
  assert.deepEqual(sent, [{ start_date: "2026-11-03", end_date: "2026-11-17" }]);
  assert.ok(await page.getByText("Recalculate all pending …").isDisabled());
  become({ ...organisation(), lastRun: "2026-11-22T05:00:00Z" });
  await page.clock.runFor(6_000);
  await dialog.getByText("Done.").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("heading", { name: "Nothing is wrong" }).waitFor();
  assert.equal(await page.getByText("Recalculate all pending …").count(), 0);
  await leave(found);
});

test("a run that cannot begin says why, and nothing else has happened", async () => {
  const found = await over({ ...organisation(), pending: PENDING });
  await found.page.route("**/pipeline/run", (route) => problem(route, 409, "Conflict", "Pipeline is already running"));
  await found.open("acme/days?period=7d");
  await found.page.getByRole("button", { name: "Recalculate all pending …" }).click();
  await found.page.getByRole("button", { name: "Recalculate 3 days" }).click();
  await found.page.getByRole("dialog").getByText("Pipeline is already running").waitFor();
  await leave(found);
});

for (const [name, more] of Object.entries<Partial<Organisation>>({
  "the reader may not start runs": { me: reader(["read", "export"]) },
  "every day waits for a source": { refused: Object.keys(PENDING) },
  "the tenant is suspended": { suspended: "The key is not valid." },
}))
  test(`nothing offers to recalculate all pending days where ${name}`, async () => {
    const found = await over({ ...organisation(), pending: PENDING, ...more });
    await found.open("acme/days?period=7d");
    await found.page.locator(".problems > li").first().waitFor();
    assert.equal(await found.page.getByText("Recalculate all pending").count(), 0);
    await leave(found);
  });

test("health: the worst first, with its days, what to do, and how far each source is; the head leads there", async () => {
  const errors = ["2026-11-18: the metrics were refused (401)"];
  const pending = { "2026-11-17": "644.00", "2026-11-18": "500.00" };
  const found = await over({ ...organisation(), pending, errors });
  const { page } = found;
  await found.open("acme/costs?period=7d");
  await page.getByRole("banner").getByRole("link", { name: "2 days not calculated yet" }).click();
  const problems = page.locator(".problems > li");
  await problems.first().waitFor();
  assert.deepEqual(
    (await problems.allInnerTexts()).map((each) => each.replace(/\s+/g, " ")),
    [
      `2 days not calculated yet 17 Nov – 18 Nov 2026 ${errors[0]} Run it again.`,
      `The last run had errors ${errors[0]} Run it again.`,
    ],
  );
  for (const width of [1440, 768, 360]) {
    await page.setViewportSize({ width, height: 900 });
    assert.equal(await overflow(page), 0, `${width} px`);
    assert.deepEqual(await findings(page, "all"), []);
  }
  await problems.first().getByRole("link").click();
  await page.waitForURL(/days\?start_date=2026-11-17&end_date=2026-11-18/);
  await leave(found);
});
