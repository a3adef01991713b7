/** Figures while something changes: none is drawn that was not answered, and what is wrong is said where it is seen first. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import { sum, write } from "../../src/money/money.ts";
import { finding, organisation } from "./fake.ts";
import { CENTRES } from "./fakepages.ts";
import { exact } from "./service.ts";
import { BASE, close, findings, hasAsked, leave, over, overflow, reader, settled } from "./world.ts";

after(close);

const nowhere = /undefined|NaN|\$0\.00/;
const chart = (page: Page) => page.getByRole("slider", { name: "Read the chart day by day" });

test("a day that is chosen in the chart is the period, and every figure is of it", async () => {
  const of = organisation();
  const found = await over(of);
  const { page } = found;
  await found.open("acme/costs?period=7d");
  await chart(page).focus();
  await page.keyboard.press("End");
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("Enter");
  await page.waitForURL(/start_date=2026-11-15&end_date=2026-11-15/);
  await settled(page);
  const day = sum(of.rows.filter((each) => each.date === "2026-11-15").map((each) => each.amount));
  assert.equal(await page.locator(".lead").getAttribute("title"), exact(day));
  const text = `${await page.locator(".overtime").innerText()} ${await chart(page).getAttribute("aria-valuetext")}`;
  assert.doesNotMatch(text, nowhere);
  assert.equal(await overflow(page), 0);
  await leave(found);
});

test("the costs wait for no other answer, nor for the code that draws them, and few requests come before the chart", async () => {
  const found = await over(organisation());
  const { page } = found;
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  await page.route(/\/api\/v1\/(?!.*\/costs\?)/, async (route) => {
    await released;
    await route.fallback();
  });
  await page.route(/\/assets\/page-[^/]*\.js$/, async (route) => {
    await hasAsked(found, (each) => each.includes("/costs?"));
    await route.fallback();
  });
  await page.addInitScript(() => {
    new MutationObserver((_, observer) => {
      if (!document.querySelector(".overtime svg path")) return;
      document.documentElement.dataset.first = String(performance.now());
      observer.disconnect();
    }).observe(document, { childList: true, subtree: true });
  });
  await page.goto(`${BASE}acme/costs?period=7d`);
  await page.locator(".overtime svg path").first().waitFor();
  release();
  await settled(page);
  const before = await page.evaluate(() =>
    performance
      .getEntriesByType("resource")
      .filter((each) => each.startTime < Number(document.documentElement.dataset.first))
      .map(({ name }) => name),
  );
  // The address of the page is a request, too.
  assert.ok(before.length + 1 <= 12, before.join("\n"));
  assert.equal(before.filter((each) => each.includes("/acme/costs?period=7d&")).length, 1);
  await leave(found);
});

test("while another stack is on its way, chart, table and list stay those of the one that was answered", async () => {
  // However often it is asked: the mouse over a link asks before the click.
  const { promise, resolve: release } = Promise.withResolvers<void>();
  const found = await over(organisation(), {
    "/costs": async (route, url) => {
      if (url.searchParams.get("by") === "product_type") await promise;
      return route.fallback();
    },
  });
  const { page } = found;
  await found.open("acme/costs?period=7d&table=1");
  const table = page.getByRole("region", { name: "Costs of each day" });
  const answered = await table.innerText();
  await page.getByRole("navigation", { name: "Stacked by" }).getByRole("link", { name: "Product" }).click();
  await page.locator(".stale").waitFor();
  assert.equal(await table.innerText(), answered);
  assert.doesNotMatch(answered, nowhere);
  release();
  await settled(page);
  assert.match(await table.innerText(), /Kafka CKUs/);
  assert.doesNotMatch(await table.innerText(), nowhere);
  await leave(found);
});

test("without a network the page says that it is offline, beside what was answered before", async () => {
  const found = await over(organisation(), {}, {});
  const { page } = found;
  await found.open("acme/costs?period=7d");
  await page.context().setOffline(true);
  await page.getByRole("navigation", { name: "Stacked by" }).getByRole("link", { name: "Product" }).click();
  await page.getByRole("heading", { name: "You are offline" }).waitFor();
  assert.doesNotMatch(await page.locator(".overtime").innerText(), nowhere);
  await page.context().setOffline(false);
  await page.getByRole("heading", { name: "You are offline" }).waitFor({ state: "detached" });
  await leave(found);
});

test("days that wait are the first thing to be seen, also behind the last calculated one", async () => {
  const errors = ["2026-11-18: the metrics were refused (401): the key is not valid any more"];
  const pending = { "2026-11-17": "644.00", "2026-11-18": "500.00" };
  const found = await over({ ...organisation(), pending, errors }, {}, {});
  const { page } = found;
  await page.clock.install({ time: "2026-11-19T12:00:00Z" });
  for (const name of ["costs", "days"]) {
    await found.open(`acme/${name}?period=7d`);
    const banner = page.getByRole("status").filter({ hasText: "2 days are billed and not calculated yet: $1,144.00" });
    await banner.waitFor();
    assert.match(
      (await banner.innerText()).replace(/\s+/g, " "),
      /17 Nov – 18 Nov 2026.*the key is not valid any more/,
    );
    assert.deepEqual(await findings(page, "all"), []);
  }
  await page.getByRole("link", { name: "These days" }).click();
  await page.getByRole("heading", { name: "2 days not calculated yet", exact: true }).waitFor();
  assert.equal(await overflow(page), 0);
  await leave(found);
});

test("long names, and names from right to left, stay where there is room for them", async () => {
  const of = organisation();
  const long = "a-name-that-never-ends-".repeat(20);
  const found = await over({ ...of, names: { ...of.names, "sa-0": long, "sa-1": "خدمة المدفوعات والفواتير" } });
  const { page } = found;
  for (const width of [1440, 320]) {
    await page.setViewportSize({ width, height: 900 });
    await found.open("acme/costs?period=7d&by=identity_id&identity_id=sa-0&identity_id=sa-1");
    await page.locator(".chip b").getByText(long).waitFor();
    await chart(page).focus();
    await page.keyboard.press("ArrowLeft");
    await page.locator(".tip th").getByText(long).waitFor({ state: "attached" });
    assert.equal(await overflow(page), 0, `${width} px`);
    const [tip, plot] = await Promise.all([".tip", ".overtime"].map((each) => page.locator(each).boundingBox()));
    assert.ok(tip && plot && tip.width <= plot.width, `${width} px`);
  }
  await leave(found);
});

test("findings are those of the filters of the address, and say which of them they do not know", async () => {
  const idle = (id: string, team: string) => finding(id, "idle_identity", { team });
  const found = await over({ ...organisation(), findings: [idle("sa-0", "payments"), idle("sa-1", "orders")] });
  await found.open("acme/findings?tag:team=payments&product_type=KAFKA_BASE");
  await found.page.getByRole("heading", { name: "1 of 2 findings" }).waitFor();
  await found.page.getByText("Findings know nothing of product").waitFor();
  assert.deepEqual(await findings(found.page), []);
  await leave(found);
});

test("an address that cannot be read is not another period without a word", async () => {
  const found = await over(organisation());
  await found.open("acme/costs?start_date=2026-11-09&end_date=2026-11-01");
  await found.page.getByText("the last day, 2026-11-01, is before the first, 2026-11-09. The usual is shown").waitFor();
  await leave(found);
});

test("a proxy's page in place of an answer: the session has ended, and the page is loaded again", async () => {
  let ended = false;
  const page = { contentType: "text/html", body: "<html>Sign in</html>" };
  const found = await over(organisation(), { "/costs": (route) => (ended ? route.fulfill(page) : route.fallback()) });
  await found.open("acme/costs?period=7d");
  ended = true;
  await found.page.getByRole("navigation", { name: "Stacked by" }).getByRole("link", { name: "Product" }).click();
  await found.page.getByRole("heading", { name: "Your session has ended" }).waitFor();
  ended = false;
  await found.page.getByRole("button", { name: "Load the page again" }).click();
  await settled(found.page);
  await leave(found);
});

test("keys that lead to a page lead to its beginning, and its entry is in sight at every width", async () => {
  const found = await over(organisation());
  const { page } = found;
  await page.setViewportSize({ width: 360, height: 800 });
  await found.open("acme/costs?period=7d");
  for (const [key, place, title] of [
    ["v", "Views", "Views"],
    ["d", "Health", "Health – Days"],
    ["i", "Savings", "Savings – Findings"],
    ["a", "Ownership", "Ownership – Tags"],
    ["c", "Costs", "Costs"],
  ] as const) {
    await page.keyboard.press("g");
    await page.keyboard.press(key);
    await page.getByRole("heading", { name: `${title} of acme`, level: 1 }).waitFor();
    assert.equal(await page.evaluate(() => document.activeElement?.id), "main", title);
    const box = await page
      .getByRole("navigation", { name: "Places" })
      .getByRole("link", { name: place, exact: true })
      .boundingBox();
    assert.ok(box && box.x >= 0 && box.x + box.width <= 360, `${title}: ${JSON.stringify(box)}`);
  }
  await leave(found);
});

test("an edit of a category is not left without a question", async () => {
  const found = await over({ ...organisation(), categories: CENTRES });
  const { page } = found;
  const asked: string[] = [];
  let stay = true;
  page.on("dialog", (dialog) => {
    asked.push(dialog.message());
    return stay ? dialog.dismiss() : dialog.accept();
  });
  await found.open("acme/costs?period=7d");
  await page.keyboard.press("g");
  await page.keyboard.press("o");
  await page.getByRole("button", { name: "Edit", exact: true }).click();
  await page.getByRole("button", { name: /^Remove rule 1/ }).click();
  await page.getByRole("navigation", { name: "Places" }).getByRole("link", { name: "Costs", exact: true }).click();
  const again = page.waitForEvent("dialog");
  await page.goBack();
  await again;
  assert.equal(asked.length, 2);
  assert.match(asked[0] ?? "", /not saved/);
  await page.getByRole("button", { name: "Show what changes" }).waitFor();
  assert.match(page.url(), /\/categories/);
  stay = false;
  await page.getByRole("navigation", { name: "Places" }).getByRole("link", { name: "Costs", exact: true }).click();
  await page.waitForURL(/\/costs/);
  assert.equal(asked.length, 3);
  await leave(found);
});

test("the names of what an opened address filters by are those of the inventory", async () => {
  const found = await over(organisation());
  await found.page.goto(`${BASE}acme/rows?identity_id=sa-2`);
  await found.page.locator(".chip", { hasText: "Identity is Service 2" }).waitFor();
  await leave(found);
});

test("why this amount fits its drawer at every width, whatever was measured", async () => {
  const of = organisation();
  const found = await over({ ...of, names: { ...of.names, "sa-0": "orders-service-account-of-the-platform-team" } });
  const dialog = found.page.getByRole("dialog", { name: "Why this amount?" });
  for (const width of [1440, 768, 360]) {
    await found.page.setViewportSize({ width, height: 900 });
    await found.open("acme/rows?period=7d");
    await found.page
      .getByRole("button", { name: /why this amount/ })
      .first()
      .click();
    await dialog.getByRole("heading", { name: "Who shares it" }).waitFor();
    const cut = await dialog.evaluate((whole) =>
      [whole, ...whole.querySelectorAll(".scroller, p, li, form")]
        .filter((each) => each.scrollWidth > each.clientWidth + 1)
        .map((each) => `${each.className} ${each.scrollWidth} in ${each.clientWidth}`),
    );
    assert.deepEqual(cut, [], `${width} px`);
    await found.page.keyboard.press("Escape");
  }
  await leave(found);
});

test("why an amount is so has an address: it opens again, and Back closes it", async () => {
  const found = await over(organisation());
  const { page } = found;
  const dialog = page.getByRole("dialog", { name: "Why this amount?" });
  const rows = "acme/rows?period=7d&identity_id=sa-2";
  await found.open(rows);
  const first = page.getByRole("button", { name: /why this amount/ }).first();
  await first.click();
  await dialog.getByText("Service 2 has its part of").waitFor();
  const address = page.url();
  assert.match(address, /\?period=7d&identity_id=sa-2&why=date%3D2026-11-/);
  await page.goBack();
  await dialog.waitFor({ state: "detached" });
  await page.waitForURL(BASE + rows);
  await first.click();
  await page.keyboard.press("Escape");
  await page.waitForURL(BASE + rows);
  assert.match((await page.evaluate(() => document.activeElement?.textContent)) ?? "", /why this amount/);
  await page.goto(address);
  await dialog.getByText("Service 2 has its part of").waitFor();
  await dialog.getByRole("textbox", { name: /Why not another identity/ }).fill("sa-0");
  await page.keyboard.press("Enter");
  await page.waitForURL(/identity_id%3Dsa-0/);
  await dialog.getByRole("button", { name: "Close" }).click();
  await page.waitForURL(BASE + rows);
  await leave(found);
});

test("the finder knows cost centres and saved views, fills its dialog, and says which days its amounts are of", async () => {
  const created = { created_by: "alice", created_at: "2026-11-16T08:00:00Z" };
  const query = "?period=7d&tag:team=payments";
  const of = { ...organisation(), views: [{ id: "1", name: "Payments each week", page: "costs", query, ...created }] };
  const found = await over(of);
  const { page } = found;
  const search = async (text: string) => {
    await page.keyboard.press("/");
    await page.getByRole("combobox", { name: "Find anything" }).fill(text);
  };
  await found.open("acme/bill?start_date=2026-11-10&end_date=2026-11-12&product_type=KAFKA_STORAGE");
  await search("payments");
  const centre = page.getByRole("option", { name: /Centre of payments/ });
  const paid = of.rows.filter((each) => each["tag:team"] === "payments" && /2026-11-1[012]/.test(each.date));
  const cost = Number(write(sum(paid.map((each) => each.amount))));
  const dollars = new Intl.NumberFormat("en-US", { style: "currency", currency: "USD" }).format(cost);
  await centre.getByText(`Cost centre · ${dollars}`).waitFor();
  await page.getByRole("dialog").getByText("Amounts are those of 10 Nov – 12 Nov 2026, without filters.").waitFor();
  for (const width of [1440, 360]) {
    await page.setViewportSize({ width, height: 900 });
    const [dialog, list] = await Promise.all(
      ["dialog", "dialog [role=listbox]"].map((each) => page.locator(each).first().boundingBox()),
    );
    assert.ok(dialog && list && dialog.width - list.width < 24, `${list?.width} px of ${dialog?.width}`);
    assert.deepEqual(await findings(page, "all"), []);
  }
  await centre.click();
  await page.waitForURL(/costs\?start_date=2026-11-10&end_date=2026-11-12&category:cost_center=cc-payments/);
  await search("each week");
  await page.getByRole("option", { name: /Payments each week.*saved view/ }).click();
  await page.waitForURL(/costs\?period=7d&tag:team=payments/);
  await leave(found);
});

test("the finder starts a run, exports what is shown, and leads to what else can be done, each where it is allowed", async () => {
  const started: unknown[] = [];
  const found = await over(organisation(), {
    "/pipeline/run": (route) => {
      started.push(route.request().postDataJSON());
      return route.fulfill({ status: 202, json: { status: "started", run_id: "9" } });
    },
  });
  const { page } = found;
  const choose = async (text: string) => {
    await page.keyboard.press("/");
    await page.getByRole("combobox", { name: "Find anything" }).fill(text);
    await page.getByRole("option", { name: new RegExp(`${text}.*action`) }).waitFor();
    await page.keyboard.press("Enter");
  };
  await found.open("acme/costs?period=7d&tag:team=payments");
  const [file] = await Promise.all([page.waitForEvent("download"), choose("Export these rows as CSV")]);
  assert.match(
    file.url(),
    /chargebacks\.csv\?period=7d&tag%3Ateam=payments|chargebacks\.csv\?period=7d&tag:team=payments/,
  );
  await choose("Close a month");
  await page.waitForURL(/acme\/month-end/);
  await Promise.all([page.waitForResponse(/pipeline\/run$/), choose("Run now")]);
  await page.waitForURL(/acme\/days/);
  assert.deepEqual(started, [{}]);
  await leave(found);

  const other = await over({ ...organisation(), me: reader(["read"]) });
  await other.open("acme/costs?period=7d");
  await other.page.keyboard.press("/");
  await other.page.getByRole("combobox", { name: "Find anything" }).fill("Run now");
  await other.page.getByText("Nothing has this name.").waitFor();
  await leave(other);
});

for (const [name, path] of [
  ["costs", "acme/costs?period=7d"],
  ["a cost category", "acme/categories/cost_center?period=7d"],
] as const)
  for (const width of [1440, 360])
    test(`what loads of ${name} takes its place at once: nothing moves at ${width} px`, async () => {
      const found = await over({ ...organisation(), categories: CENTRES }, {}, { viewport: { width, height: 800 } });
      let asked = 0;
      await found.page.route("**/api/v1/**", async (route) => {
        await new Promise((resolve) => setTimeout(resolve, 100 + 40 * (asked++ % 7)));
        return route.fallback();
      });
      await found.page.addInitScript(() => {
        let moved = 0;
        new PerformanceObserver((list) => {
          for (const each of list.getEntries()) moved += (each as PerformanceEntry & { value: number }).value;
          document.documentElement.dataset.moved = String(moved);
        }).observe({ type: "layout-shift", buffered: true });
      });
      await found.open(path);
      await found.page.waitForTimeout(300);
      const moved = await found.page.evaluate(() => Number(document.documentElement.dataset.moved ?? 0));
      assert.ok(moved < 0.02, `layout shift of ${moved}`);
      if (width === 360) assert.deepEqual(await findings(found.page, "all"), []);
      await leave(found);
    });

test("seven places, each with a title and a sentence, and a word that is asked about is explained", async () => {
  const found = await over(organisation());
  const { page } = found;
  await found.open("acme/costs?period=7d");
  const places = page.getByRole("navigation", { name: "Places" }).getByRole("link");
  const names = await places.allTextContents();
  assert.deepEqual(names, ["Costs", "Explore", "Savings", "Ownership", "Bill", "Health", "Views"]);
  for (const name of names) {
    await places.getByText(name, { exact: true }).click();
    await page.getByRole("heading", { name: new RegExp(`^${name}.* of acme$`), level: 1 }).waitFor();
    assert.match(await page.locator(".title p").innerText(), /^.{20,}\.$/, name);
    assert.equal(await page.locator(".nav [aria-current]").innerText(), name);
  }
  await found.open("acme/costs?period=7d");
  const help = page.getByRole("dialog", { name: "Help" });
  await page.getByRole("link", { name: "what “No owner” means" }).click();
  assert.match(await help.locator(".lit").innerText(), /^No owner\nCost for which no identity was found/);
  for (const width of [1440, 360]) {
    await page.setViewportSize({ width, height: 900 });
    assert.deepEqual(await findings(page, "all"), []);
    assert.equal(await overflow(page), 0);
  }
  await page.goBack();
  await help.waitFor({ state: "detached" });
  assert.equal(page.url(), `${BASE}acme/costs?period=7d`);
  await page.keyboard.press("?");
  await help.getByText("The period before, and after").waitFor();
  await help.getByRole("link", { name: "its documentation" }).waitFor();
  await leave(found);
});
