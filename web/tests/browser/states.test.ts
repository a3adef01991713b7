/** What a page says while something is not as usual: loading, failing, empty, partial, pending, running, suspended. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Route } from "playwright-core";
import type { Aggregate, Costs, Tenant } from "../../src/api/shapes";
import { acme, type Organisation } from "./fake.ts";
import { type Answers, BASE, close, findings, leave, over, problem, settled, type World } from "./world.ts";

after(close);

async function visit(path: string, answers: Answers = {}, of: Organisation = acme()): Promise<World> {
  const found = await over(of, answers);
  await found.page.goto(BASE + path);
  return found;
}

/** The costs that the service would answer, changed. */
const changed = (change: (costs: Costs) => void) => async (route: Route) => {
  const costs: Costs = await (await route.fetch()).json();
  change(costs);
  return route.fulfill({ json: costs });
};

test("loading, not reached, failing, and there at last: what is to come has its place, and each error another try", async () => {
  const { promise, resolve: answer } = Promise.withResolvers<void>();
  let next = (route: Route) => promise.then(() => route.abort());
  const found = await visit("acme/costs?period=7d", { "/costs": (route) => next(route) });
  const { page } = found;
  const again = page.getByRole("button", { name: "Try again" }).first();
  await page.getByText("Loading").waitFor({ state: "attached" });
  assert.ok((await page.locator(".bone").count()) > 5);
  assert.deepEqual(await findings(page), []);
  answer();
  await page.getByText("The service cannot be reached").waitFor();
  next = (route) => problem(route, 503, "The storage cannot be used", "The database is locked.");
  await again.click();
  await page.getByText("The storage cannot be used").waitFor();
  await page.getByText("HTTP 503").waitFor();
  assert.deepEqual(await findings(page, "all"), []);
  // The page also tries again by itself: were the service well before the click, the button might be gone already.
  await again.click();
  next = (route) => route.fallback();
  await page.locator(".lead").waitFor();
  await leave(found);
});

test("refetching: the old figures stay until new ones are there", async () => {
  let late: Promise<void> | undefined;
  const found = await visit("acme/costs?period=7d", {
    "/costs": (route) => Promise.resolve(late).then(() => route.fallback()),
  });
  await settled(found.page);
  const lead = found.page.locator(".lead");
  const before = await lead.innerText();
  const { promise, resolve: answer } = Promise.withResolvers<void>();
  late = promise;
  await found.page
    .getByRole("link", { name: /^Search / })
    .first()
    .click();
  await found.page.locator(".stale").waitFor();
  assert.equal(await lead.innerText(), before);
  assert.deepEqual(await findings(found.page), []);
  answer();
  await found.page.locator(".stale").waitFor({ state: "detached" });
  assert.notEqual(await lead.innerText(), before);
  await leave(found);
});

test("a wrong request is told once, and not asked again", async () => {
  const found = await over(acme(), { "/costs": (route) => problem(route, 400, "Invalid request", "by: unknown") }, {});
  await found.page.clock.install();
  await found.page.goto(`${BASE}acme/costs?period=7d`);
  await found.page.getByText("by: unknown").waitFor();
  await found.page.clock.runFor(5_000);
  assert.equal(found.asked.filter((each) => each.includes("/costs")).length, 1);
  await leave(found);
});

test("empty: which view is empty, and a way out", async () => {
  const found = await visit("acme/costs?period=7d&identity_id=nobody-there");
  await found.page.getByText("No costs in this view").waitFor();
  const way = found.page.getByRole("link", { name: "Show the last 30 days without filters" });
  assert.equal(await way.getAttribute("href"), new URL("acme/costs", BASE).pathname);
  assert.deepEqual(await findings(found.page), []);
  await found.go("acme/bill?period=7d&identity_id=nobody-there");
  await found.page.getByText("No costs in this bill").waitFor();
  await leave(found);
});

test("partial: what is not comparable has no delta", async () => {
  const found = await visit("acme/costs?period=7d", {
    "/costs": changed((costs) => {
      if (costs.compared_with) costs.compared_with.days_with_costs = 5;
    }),
  });
  await found.page.getByText("the period before has only 5 of 7 days: not comparable", { exact: true }).waitFor();
  assert.equal(await found.page.locator(".delta").count(), 0);
  assert.deepEqual(await findings(found.page, "all"), []);
  await leave(found);
});

test("a day that differs from the bill, one that is pending, and topics that are not attributed are told", async () => {
  const found = await visit("acme/costs?period=7d", {
    "/costs": changed((costs) => {
      costs.topics = null;
      Object.assign(costs.days?.[2] ?? {}, { state: "differs", difference: "0.000000000001" });
      Object.assign(costs.days?.[6] ?? {}, { state: "pending", charged: "0.00" });
    }),
  });
  await found.page.getByText("1 day differs").waitFor();
  await found.page.getByText("6 of 7 days calculated").waitFor();
  await found.page.getByText("0.000000000001", { exact: true }).waitFor();
  assert.match((await found.page.locator("[data-day='2026-11-16']").getAttribute("class")) ?? "", /pending/);
  await found.page.getByText("Costs of topics are not attributed for this tenant").waitFor();
  assert.deepEqual(await findings(found.page, "all"), []);
  await leave(found);
});

test("running and suspended are said above the figures", async () => {
  const suspended = "5 gathers failed in a row.";
  const found = await visit("acme/costs?period=7d", {}, { ...acme(), isRunning: true });
  await found.page.getByText("New figures appear by themselves.").waitFor();
  await leave(found);
  const other = await visit("acme/costs?period=7d", {}, { ...acme(), suspended });
  await other.page.getByText(suspended).waitFor();
  assert.deepEqual(await findings(other.page, "all"), []);
  await leave(other);
});

test("an unknown tenant: those that are known; an unknown page: a way back", async () => {
  const found = await visit("nosuch/costs");
  await found.page.getByText("There is no tenant “nosuch”").waitFor();
  assert.deepEqual(await findings(found.page), []);
  await found.page.getByRole("link", { name: "acme", exact: true }).click();
  await found.page.locator(".lead").waitFor();
  await found.go("acme/nowhere");
  await found.page.getByText("There is no such page").waitFor();
  assert.deepEqual(await findings(found.page), []);
  await leave(found);
});

test("not allowed to see the list: a name can be typed, and is remembered", async () => {
  const found = await visit("", { "/tenants": (route) => problem(route, 403, "Forbidden") });
  await found.page.getByRole("textbox", { name: "Tenant" }).fill("acme");
  assert.deepEqual(await findings(found.page, "all"), []);
  await found.page.getByRole("button", { name: "Open" }).click();
  await found.page.locator(".lead").waitFor();
  await found.page.goto(BASE);
  assert.equal(await found.page.getByRole("textbox", { name: "Tenant" }).inputValue(), "acme");
  await leave(found);
});

test("a run that is refused is told, and where a service starts no runs, the days say so", async () => {
  const found = await visit("acme/days?period=7d");
  await found.page.route("**/pipeline/run", (route) =>
    problem(route, 409, "Conflict", "Pipeline is already running for tenant acme"),
  );
  await found.page.getByRole("button", { name: "Run now" }).click();
  await found.page.getByText("Pipeline is already running for tenant acme").waitFor();
  assert.deepEqual(await findings(found.page), []);
  await leave(found);
  const other = await visit("acme/days?period=7d", {
    "": async (route) => {
      const tenant: Tenant = await (await route.fetch()).json();
      return route.fulfill({ json: { ...tenant, features: { ...tenant.features, can_run: false } } });
    },
  });
  await other.page.getByText("Runs are started by another process, not from here.").waitFor();
  assert.equal(await other.page.getByRole("button", { name: "Run now" }).count(), 0);
  await leave(other);
});

type Sent = { items: { tag_value: string }[] }[];

/** Answers changes of tags, and keeps them; trials are kept apart. */
async function takesTags(found: World): Promise<{ sent: Sent; tried: Sent }> {
  const counts = { created_count: 1, updated_count: 0, skipped_count: 0 };
  const entities = [{ entity_type: "resource", entity_id: "lkc-1", ...counts }];
  const [sent, tried]: [Sent, Sent] = [[], []];
  await found.page.route("**/tags/bulk", (route) => {
    const { dry_run, ...body } = route.request().postDataJSON();
    (dry_run ? tried : sent).push(body);
    return route.fulfill({ json: dry_run ? { ...counts, entities } : counts });
  });
  return { sent, tried };
}

test("tags are shown before they are written", async () => {
  const found = await visit("acme/unowned?period=7d", {}, { ...acme(), categories: null });
  const { sent, tried } = await takesTags(found);
  await found.page.getByRole("checkbox", { name: /prod-enterprise-1/ }).check();
  await found.page.getByRole("combobox", { name: "Value" }).fill("payments");
  await found.page.getByRole("textbox", { name: "Your name" }).fill("alice");
  await found.page.getByRole("button", { name: "Preview" }).click();
  await found.page.getByText("1 would be created, 0 changed, 0 left as they are.").waitFor();
  assert.deepEqual([sent.length, tried.length], [0, 1]);
  await found.page.getByRole("button", { name: "Write" }).click();
  await found.page.getByText("1 created, 0 changed, 0 left as they were.").waitFor();
  assert.deepEqual(
    sent[0]?.items.map((each) => each.tag_value),
    ["payments"],
  );
  await leave(found);
});

test("tags of a file: mistakes by their line, then the effect, then the change", async () => {
  const found = await visit("acme/tags?period=7d");
  const { sent } = await takesTags(found);
  const { page } = found;
  const upload = (text: string) =>
    page
      .getByLabel("File", { exact: true })
      .setInputFiles({ name: "tags.csv", mimeType: "text/csv", buffer: Buffer.from(text) });
  await page.getByLabel("Your name").fill("alice");
  const head = "entity_type,entity_id,tag_key,tag_value\n";
  await upload(`${head}resource,lkc-1,team,\ntopic,x,team,y\n`);
  await page.getByText("2 lines are wrong; nothing of the file is used.").waitFor();
  assert.deepEqual(await page.locator("section[aria-label='Mistakes in the file'] tbody tr").allInnerTexts(), [
    "2\ttag_value is missing",
    "3\tentity_type is “topic”, and should be resource or identity",
  ]);
  assert.ok(await page.getByRole("button", { name: "Preview" }).isDisabled());
  assert.deepEqual(await findings(page, "all"), []);
  await upload(`${head}resource,lkc-1,team,payments\n`);
  await page.getByRole("button", { name: "Preview" }).click();
  await page.getByText("1 would be created, 0 changed, 0 left as they are.").waitFor();
  assert.equal(sent.length, 0);
  await page.getByRole("button", { name: "Write" }).click();
  await page.getByText("1 created, 0 changed, 0 left as they were.").waitFor();
  assert.equal(sent[0]?.items[0]?.tag_value, "payments");
  await leave(found);
});

test("days are recalculated after a question, and the run is followed to its end", async () => {
  let [on, ended] = [false, false];
  const found = await over(
    acme(),
    {
      "/pipeline/status": async (route) => {
        const told = await (await route.fetch()).json();
        const last_result = { ...told.last_result, errors: ["2026-11-12: no metrics"] };
        const after = ended ? { last_run: "2026-11-22T05:00:00Z", last_result } : {};
        return route.fulfill({ json: { ...told, is_running: on, ...after } });
      },
    },
    {},
  );
  await found.page.clock.install();
  const { page } = found;
  let asked: unknown;
  await page.route("**/pipeline/run", (route) => {
    asked = route.request().postDataJSON();
    on = true;
    return route.fulfill({ status: 202, json: { status: "started" } });
  });
  await found.open("acme/days?period=7d");
  await page.getByRole("button", { name: "Recalculate these days …" }).click();
  const dialog = page.getByRole("dialog", { name: "Recalculate these days" });
  await dialog.getByLabel("To", { exact: true }).fill("2026-11-12");
  assert.equal(asked, undefined);
  assert.deepEqual(await findings(page, "all"), []);
  await dialog.getByRole("button", { name: "Recalculate 3 days" }).click();
  await dialog.getByText("The run is on.").waitFor();
  const dates = { start_date: "2026-11-10", end_date: "2026-11-12" };
  assert.deepEqual(asked, { ...dates, recalculate: true, accept_less: false });
  [on, ended] = [false, true];
  await page.clock.runFor(6_000);
  await dialog.getByText("The run has ended with 1 error.").waitFor();
  await dialog.getByText("2026-11-12: no metrics").waitFor();
  await leave(found);
});

test("the bill: an error, and sums that are not all here", async () => {
  let answer = (route: Route): unknown => problem(route, 504, "The query took too long");
  const found = await visit("acme/bill?period=7d", { "/chargebacks/aggregate": (route) => answer(route) });
  await found.page.getByText("The query took too long").waitFor();
  answer = async (route) => {
    const all: Aggregate = await (await route.fetch()).json();
    return route.fulfill({ json: { ...all, buckets: all.buckets.slice(1) } });
  };
  await found.page.getByRole("button", { name: "Try again" }).click();
  await found.page.getByText("the oldest months are not all here").waitFor();
  assert.deepEqual(await findings(found.page), []);
  await leave(found);
});
