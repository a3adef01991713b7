import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Route } from "playwright-core";
import { type Answers, BASE, close, findings, problem, RECORDED, type World, world } from "./world.ts";

after(close);

async function visit(path: string, answers: Answers): Promise<World> {
  const found = await world({}, answers);
  await found.page.goto(BASE + path);
  return found;
}

/** The recorded costs, changed. */
function changed(change: (costs: typeof RECORDED.costs) => void): (route: Route) => Promise<void> {
  const costs = structuredClone(RECORDED.costs);
  change(costs);
  return (route) => route.fulfill({ json: costs });
}

/** `all`: the state has colours of its own. */
async function end({ page, complaints, close: leave }: World, what?: "all"): Promise<void> {
  assert.deepEqual(await findings(page, what), []);
  assert.deepEqual(complaints, []);
  await leave();
}

test("loading: places of the final size, and a word for readers", async () => {
  let answer: (() => void) | undefined;
  const waits = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const found = await visit("acme/costs?period=7d", {
    costs: async (route) => {
      await waits;
      return route.fulfill({ json: RECORDED.costs });
    },
  });
  await found.page.getByText("Loading").waitFor({ state: "attached" });
  assert.ok((await found.page.locator(".bone").count()) > 5);
  assert.deepEqual(await findings(found.page), []);
  answer?.();
  await found.page.getByText("$15,161.99").first().waitFor();
  await end(found);
});

test("refetching: the old figures stay until new ones are there", async () => {
  let late = false;
  const found = await visit("acme/costs?period=7d", {
    costs: async (route) => {
      if (late) await new Promise((resolve) => setTimeout(resolve, 400));
      return route.fulfill({ json: RECORDED.costs });
    },
  });
  await found.page.getByText("$15,161.99").first().waitFor();
  late = true;
  await found.page
    .getByRole("link", { name: /^search / })
    .first()
    .click();
  await found.page.locator(".stale").waitFor();
  assert.ok(await found.page.getByText("$15,161.99").first().isVisible());
  await found.page.locator(".stale").waitFor({ state: "detached" });
  await end(found);
});

test("error: what the service says, at once, and another try", async () => {
  let broken = true;
  const found = await visit("acme/costs?period=7d", {
    costs: (route) =>
      broken
        ? problem(route, 503, "The storage cannot be used", "The database is locked.")
        : route.fulfill({ json: RECORDED.costs }),
  });
  await found.page.getByText("The storage cannot be used").waitFor();
  assert.ok(await found.page.getByText("HTTP 503").isVisible());
  assert.deepEqual(await findings(found.page, "all"), []);
  await found.page.getByRole("button", { name: "Try again" }).click();
  broken = false;
  await found.page.getByText("$15,161.99").first().waitFor();
  await end(found);
});

test("a wrong request is told once, and not asked again", async () => {
  const found = await visit("acme/costs?period=7d", {
    costs: (route) => problem(route, 400, "Invalid request", "by: unknown"),
  });
  await found.page.getByText("by: unknown").waitFor();
  await found.page.waitForTimeout(1500);
  assert.equal(found.asked.filter((each) => each.includes("/costs")).length, 1);
  await end(found);
});

test("offline: the page says so", async () => {
  const found = await visit("acme/costs?period=7d", { costs: (route) => route.abort() });
  await found.page.getByText("The service cannot be reached").waitFor();
  await end(found);
});

test("empty: which view is empty, and a way out", async () => {
  const found = await visit("acme/costs?period=7d&identity_id=nobody-there", {
    costs: changed((costs) => {
      costs.total = { ...costs.total, amount: "0.00", usage: "0.00", shared: "0.00", rows: 0, unallocated: "0.00" };
      for (const each of costs.breakdowns) Object.assign(each, { items: [], other: null, movers: [] });
    }),
  });
  await found.page.getByText("No costs in this view").waitFor();
  const way = found.page.getByRole("link", { name: "Show the last 30 days without filters" });
  assert.equal(await way.getAttribute("href"), new URL("acme/costs", BASE).pathname);
  await end(found);
});

test("partial: what is not comparable has no delta", async () => {
  const found = await visit("acme/costs?period=7d", {
    costs: changed((costs) => {
      costs.compared_with.days_with_costs = 5;
    }),
  });
  await found.page.getByText("the period before has only 5 of 7 days: not comparable", { exact: true }).waitFor();
  assert.equal(await found.page.locator(".delta").count(), 0);
  await end(found, "all");
});

test("a day that differs from the bill, and one that is pending, are told", async () => {
  const found = await visit("acme/costs?period=7d", {
    costs: changed((costs) => {
      Object.assign(costs.days[2], { state: "differs", difference: "0.000000000001" });
      Object.assign(costs.days[6], { state: "pending", charged: "0.00" });
    }),
  });
  await found.page.getByText("1 day differs").waitFor();
  assert.ok(await found.page.getByText("6 of 7 days calculated").isVisible());
  assert.ok(await found.page.getByText("0.000000000001", { exact: true }).isVisible());
  assert.match((await found.page.locator("[data-day='2026-11-16']").getAttribute("class")) ?? "", /pending/);
  await end(found, "all");
});

test("running and suspended are said above the figures", async () => {
  const running = await visit("acme/costs?period=7d", {
    status: (route) => route.fulfill({ json: { ...RECORDED.status, is_running: true } }),
  });
  await running.page.getByText("New figures appear by themselves.").waitFor();
  await end(running);
  const suspended = await visit("acme/costs?period=7d", {
    status: (route) => route.fulfill({ json: { ...RECORDED.status, permanent_failure: "5 gathers failed in a row." } }),
  });
  await suspended.page.getByText("5 gathers failed in a row.").waitFor();
  await end(suspended, "all");
});

test("topics disabled: the card says so", async () => {
  const found = await visit("acme/costs?period=7d", {
    costs: changed((costs) => {
      costs.topics = null;
    }),
  });
  await found.page.getByText("Costs of topics are not attributed for this tenant").waitFor();
  await end(found);
});

test("an unknown tenant: those that are known", async () => {
  const found = await visit("nosuch/costs", {});
  await found.page.getByText("There is no tenant “nosuch”").waitFor();
  assert.ok(await found.page.getByRole("link", { name: "acme", exact: true }).isVisible());
  await end(found);
});

test("an unknown page: a way back", async () => {
  const found = await visit("acme/nowhere", {});
  await found.page.getByText("There is no such page").waitFor();
  await end(found);
});

test("not allowed to see the list: a name can be typed, and is remembered", async () => {
  const found = await visit("", { tenants: (route) => problem(route, 403, "Forbidden") });
  await found.page.getByRole("textbox", { name: "Tenant" }).fill("acme");
  assert.deepEqual(await findings(found.page, "all"), []);
  await found.page.getByRole("button", { name: "Open" }).click();
  await found.page.getByText("$15,161.99").first().waitFor();
  await found.page.goto(BASE);
  assert.equal(await found.page.getByRole("textbox", { name: "Tenant" }).inputValue(), "acme");
  await end(found);
});

test("a run can be started, and a refusal is told", async () => {
  const found = await world({}, {});
  await found.page.route("**/pipeline/run", (route) =>
    problem(route, 409, "Conflict", "Pipeline is already running for tenant acme"),
  );
  await found.page.goto(`${BASE}acme/days?period=7d`);
  await found.page.getByRole("button", { name: "Run now" }).click();
  await found.page.getByText("Pipeline is already running for tenant acme").waitFor();
  await end(found);
});

type Sent = { items: { tag_value: string }[] }[];

/** Answers changes of tags, and keeps them; trials are kept apart. */
async function takesTags(found: World): Promise<{ sent: Sent; tried: Sent }> {
  const counts = { created_count: 1, updated_count: 0, skipped_count: 0 };
  const entities = [{ entity_type: "resource", entity_id: "lkc-f5va5i", ...counts }];
  const [sent, tried]: [Sent, Sent] = [[], []];
  await found.page.route("**/tags/bulk", (route) => {
    const { dry_run, ...body } = route.request().postDataJSON();
    (dry_run ? tried : sent).push(body);
    return route.fulfill({ json: dry_run ? { ...counts, entities } : counts });
  });
  return { sent, tried };
}

test("tags are shown before they are written", async () => {
  const found = await world({}, {});
  const { sent, tried } = await takesTags(found);
  await found.page.goto(`${BASE}acme/unowned?period=7d`);
  await found.page.getByRole("checkbox", { name: /prod-dedicated-0/ }).check();
  await found.page.getByRole("textbox", { name: "Value" }).fill("payments");
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
  await end(found);
});

test("tags of a file: mistakes by their line, then the effect, then the change", async () => {
  const found = await world({}, {});
  const { sent } = await takesTags(found);
  const { page } = found;
  const upload = (text: string) =>
    page
      .getByLabel("File", { exact: true })
      .setInputFiles({ name: "tags.csv", mimeType: "text/csv", buffer: Buffer.from(text) });
  await page.goto(`${BASE}acme/tags?period=7d`);
  await page.getByLabel("Your name").fill("alice");
  const head = "entity_type,entity_id,tag_key,tag_value\n";
  await upload(`${head}resource,lkc-f5va5i,team,\ntopic,x,team,y\n`);
  await page.getByText("2 lines are wrong; nothing of the file is used.").waitFor();
  assert.deepEqual(await page.locator("section[aria-label='Mistakes in the file'] tbody tr").allInnerTexts(), [
    "2\ttag_value is missing",
    "3\tentity_type is “topic”, and should be resource or identity",
  ]);
  assert.ok(await page.getByRole("button", { name: "Preview" }).isDisabled());
  assert.deepEqual(await findings(page, "all"), []);
  await upload(`${head}resource,lkc-f5va5i,team,payments\n`);
  await page.getByRole("button", { name: "Preview" }).click();
  await page.getByText("1 would be created, 0 changed, 0 left as they are.").waitFor();
  assert.equal(sent.length, 0);
  await page.getByRole("button", { name: "Write" }).click();
  await page.getByText("1 created, 0 changed, 0 left as they were.").waitFor();
  assert.equal(sent[0]?.items[0]?.tag_value, "payments");
  await end(found);
});

test("days are recalculated after a question, and the run is followed to its end", async () => {
  let [on, ended] = [false, false];
  const status = (route: Route) => {
    const last_result = { ...RECORDED.status.last_result, errors: ["2026-11-12: no metrics"] };
    const after = ended ? { last_run: "2026-11-22T05:00:00Z", last_result } : {};
    return route.fulfill({ json: { ...RECORDED.status, is_running: on, ...after } });
  };
  const found = await world({}, { status });
  const { page } = found;
  let asked: unknown;
  await page.route("**/pipeline/run", (route) => {
    asked = route.request().postDataJSON();
    on = true;
    return route.fulfill({ status: 202, json: { status: "started" } });
  });
  await page.goto(`${BASE}acme/days?period=7d`);
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
  await dialog.getByText("The run has ended with 1 error.").waitFor();
  assert.ok(await dialog.getByText("2026-11-12: no metrics").isVisible());
  await end(found);
});

test("where a service starts no runs, the days say so", async () => {
  const features = { ...RECORDED.tenant.features, can_run: false };
  const found = await visit("acme/days?period=7d", {
    tenant: (route) => route.fulfill({ json: { ...RECORDED.tenant, features } }),
  });
  await found.page.getByText("Runs are started by another process, not from here.").waitFor();
  assert.equal(await found.page.getByRole("button", { name: "Run now" }).count(), 0);
  await end(found);
});

test("the bill: an error, nothing at all, and sums that are not all here", async () => {
  const broken = await visit("acme/bill?period=7d", {
    aggregate: (route) => problem(route, 504, "The query took too long"),
  });
  await broken.page.getByText("The query took too long").waitFor();
  await end(broken);
  const empty = await visit("acme/bill?period=7d&identity_id=nobody-there", {
    aggregate: (route) => route.fulfill({ json: { buckets: [], total_amount: "0.00", total_rows: 0 } }),
  });
  await empty.page.getByText("No costs in this bill").waitFor();
  await end(empty);
  const { buckets, ...rest } = RECORDED.aggregate;
  const cut = await visit("acme/bill?period=7d", {
    aggregate: (route) => route.fulfill({ json: { ...rest, buckets: buckets.slice(1) } }),
  });
  await cut.page.getByText("the oldest months are not all here").waitFor();
  await end(cut);
});
