/** Costs over time, drawn in every way that can be chosen, with the same figures in each. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import type { Costs } from "../../src/api/shapes";
import { sum, write } from "../../src/money/money.ts";
import { acme, organisation } from "./fake.ts";
import { pictures } from "./picture.ts";
import { exact } from "./service.ts";
import { close, findings, leave, over, overflow, settled } from "./world.ts";

after(close);

const chart = (page: Page) => page.getByRole("slider", { name: "Read the chart day by day" });
const paths = (page: Page, kind: string) => page.locator(`.plot path.${kind}`);

async function draw(page: Page, ...choices: string[]): Promise<void> {
  for (const choice of choices) {
    await page.getByRole("button", { name: "Drawn as" }).click();
    await page.getByRole("dialog", { name: "How costs are drawn" }).getByRole("link", { name: choice }).click();
    await settled(page);
  }
}

test("weeks and months are the days added up, and what runs ends with the total, as chart and as table", async () => {
  const of = organisation();
  const found = await over(of);
  const { page } = found;
  await found.open("acme/costs?start_date=2026-10-20&end_date=2026-11-10");
  const costs = (start: string, end: string) =>
    exact(sum(of.rows.filter(({ date }) => start <= date && date <= end).map((each) => each.amount)));
  await draw(page, "Week by week");
  assert.equal(await paths(page, "area").count(), 4);
  assert.match(await page.locator(".overtime").locator("..").innerText(), /4 weeks, by/);
  await page.getByRole("link", { name: "Show as a table" }).click();
  const table = page.getByRole("region", { name: "Costs of each week" });
  const titles = await table
    .locator("tbody tr td:first-of-type .num")
    .evaluateAll((all) => all.map((each) => each.getAttribute("title")));
  const whole = costs("2026-10-20", "2026-11-10");
  assert.deepEqual(titles, [
    costs("2026-10-20", "2026-10-25"),
    costs("2026-10-26", "2026-11-01"),
    costs("2026-11-02", "2026-11-08"),
    costs("2026-11-09", "2026-11-10"),
    whole,
  ]);
  assert.equal(await page.locator(".lead").getAttribute("title"), whole);
  await draw(page, "Month by month", "Each with all before it");
  const months = page.getByRole("region", { name: "Costs of each month" });
  const running = await months
    .locator("tbody tr td:first-of-type .num")
    .evaluateAll((all) => all.map((each) => each.getAttribute("title")));
  assert.deepEqual(running, [costs("2026-10-20", "2026-10-31"), whole, whole]);
  await page.getByRole("link", { name: "Show the chart" }).click();
  assert.match((await chart(page).getAttribute("aria-valuetext")) ?? "", /^20 Oct – 10 Nov 2026: /);
  await leave(found);
});

test("a week that is chosen is the period", async () => {
  const found = await over(organisation());
  const { page } = found;
  await found.open("acme/costs?start_date=2026-10-20&end_date=2026-11-10&chart=week.bars");
  await chart(page).focus();
  await page.keyboard.press("End");
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("Enter");
  await page.waitForURL(/start_date=2026-11-02&end_date=2026-11-08&chart=week\.bars/);
  await leave(found);
});

test("areas, bars, lines and shares, by mouse, in light and dark, wide and narrow", async () => {
  const found = await over(acme());
  const { page } = found;
  await found.open("acme/costs?by=identity_id&compare=none");
  for (const [form, kind] of [
    ["Stacked bars", "area"],
    ["Lines", "stroke"],
    ["Shares of 100%", "area"],
    ["Stacked areas", "area"],
  ] as const) {
    await draw(page, form);
    // Seven of nine, and the others.
    assert.equal(await paths(page, kind).count(), 8, form);
    assert.equal((await page.locator(".plot text").first().textContent()) === "0%", form.startsWith("Shares"));
    await pictures(page, `drawn-${form.replaceAll(/\W/g, "")}`);
  }
  assert.doesNotMatch(page.url(), /chart=/);
  await draw(page, "Lines");
  await page.setViewportSize({ width: 360, height: 900 });
  assert.equal(await overflow(page), 0);
  assert.deepEqual(await findings(page, "all"), []);
  await page.getByRole("button", { name: "Drawn as" }).click();
  assert.deepEqual(await findings(page, "all"), []);
  await leave(found);
});

test("running costs of a month lead to what is likely at its end", async () => {
  const of = organisation();
  const month = of.rows.filter(({ date }) => date >= "2026-11-01").map((each) => each.amount);
  const forecast: Costs["forecast"] = {
    ...{ until: "2026-11-30", actual_to: "2026-11-16", actual: write(sum(month)), method: "The mean of a week." },
    ...{ expected: write(sum(month) * 2n), low: write(sum(month)), high: write(sum(month) * 3n) },
  };
  const found = await over(of, {
    "/costs": async (route) => {
      const answer = await route.fetch();
      await route.fulfill({ response: answer, json: { ...((await answer.json()) as Costs), forecast } });
    },
  });
  const { page } = found;
  await found.open("acme/costs?start_date=2026-11-01&end_date=2026-11-16");
  assert.equal(await paths(page, "likely").count(), 0);
  await draw(page, "Each with all before it");
  assert.equal(await paths(page, "likely").count(), 1);
  await page.getByText("likely until 30 Nov, 8 times in 10").waitFor();
  // Behind the last day there is nothing to point at.
  const box = await page.locator(".plot svg").boundingBox();
  assert.ok(box);
  await page.mouse.move(box.x + box.width - 5, box.y + 100);
  assert.match(await page.locator(".tip").innerText(), /^1 Nov – 16 Nov 2026/);
  await pictures(page, "drawn-ahead");
  assert.deepEqual(await findings(page, "all"), []);
  await leave(found);
});

test("days that are pointed at in one chart are marked in the other", async () => {
  const found = await over(organisation());
  const { page } = found;
  await found.open("acme/costs?start_date=2026-10-20&end_date=2026-11-10");
  await page.locator("[data-day='2026-11-05']").hover();
  assert.match(await page.locator(".tip").innerText(), /^Thu, 5 November 2026/);
  await draw(page, "Week by week");
  await page.locator("[data-day='2026-11-05']").hover();
  assert.match(await page.locator(".tip").innerText(), /^2 Nov – 8 Nov 2026/);
  await page.locator(".plot").hover({ position: { x: 60, y: 100 } });
  const marked = page.locator(".months .pointed");
  await marked.first().waitFor();
  const days = await marked.evaluateAll((all) => all.map((each) => each.getAttribute("data-day")));
  assert.deepEqual([days.length, days[0], days.at(-1)], [6, "2026-10-20", "2026-10-25"]);
  await page.mouse.move(0, 0);
  await marked.first().waitFor({ state: "detached" });
  await leave(found);
});

test("more of the largest values are listed, and one of them is found", async () => {
  const found = await over(organisation(30));
  const { page } = found;
  await found.open("acme/costs?by=identity_id&period=7d");
  const list = page.locator(".overtime .ranked li");
  assert.equal(await list.count(), 8);
  await page.locator(".tops").getByRole("link", { name: "20" }).click();
  await page.getByPlaceholder("Find among the largest 20").waitFor();
  assert.equal(await list.count(), 21);
  assert.equal(await paths(page, "area").count(), 8);
  await page.getByPlaceholder("Find among the largest 20").fill("service 17");
  assert.deepEqual(await list.locator(".name").allInnerTexts(), ["Service 17"]);
  await page.getByPlaceholder("Find among the largest 20").fill("nobody of that name");
  await page.getByText("None of these is called so.").waitFor();
  assert.deepEqual(await findings(page, "all"), []);
  await leave(found);
});

test("the chart is copied as a picture, or saved where the browser copies none", async () => {
  const found = await over(acme(), {}, { permissions: ["clipboard-read", "clipboard-write"] });
  const { page } = found;
  await found.open("acme/costs?period=7d");
  const take = async () => {
    await page.getByRole("button", { name: "Drawn as" }).click();
    await page.getByRole("button", { name: "Copy as picture" }).click();
  };
  const menu = page.getByRole("dialog", { name: "How costs are drawn" });
  // Everything that it needs is there with the page.
  await page.context().setOffline(true);
  await take();
  await menu.waitFor({ state: "hidden" });
  await page.context().setOffline(false);
  const copied = await page.evaluate(async () => {
    const [item] = await navigator.clipboard.read();
    const image = await createImageBitmap(await (item as ClipboardItem).getType("image/png"));
    return [image.width, image.height];
  });
  const width = await page.locator(".plot svg").evaluate((svg) => svg.getBoundingClientRect().width);
  assert.equal(copied[0], Math.floor((width + 32) * 2));
  await page.evaluate(() => {
    navigator.clipboard.write = () => Promise.reject(new Error("not allowed"));
  });
  const [saved] = await Promise.all([page.waitForEvent("download"), take()]);
  assert.equal(saved.suggestedFilename(), "costs-2026-11-10-2026-11-16.png");
  assert.deepEqual([...readFileSync(await saved.path()).subarray(1, 4)], [...Buffer.from("PNG")]);
  await menu.waitFor({ state: "hidden" });
  await page.evaluate(() => {
    HTMLImageElement.prototype.decode = () => Promise.reject(new Error("no memory"));
  });
  await take();
  await menu.getByRole("status").filter({ hasText: "could not make the picture" }).waitFor();
  assert.deepEqual(await findings(page), []);
  await leave(found);
});

test("what stands out, what was restated and what somebody has noted is marked on its day, and said there", async () => {
  const found = await over(acme());
  const { page } = found;
  await found.open("acme/costs?period=7d");
  const marks = (kind: string) => page.locator(`.plot .mark.${kind}`);
  await marks("restated").waitFor();
  assert.deepEqual(
    [await marks("stands-out").count(), await marks("restated").count(), await marks("note").count()],
    [2, 1, 1],
  );
  await page.getByText("◆ 1 day was restated").waitFor();
  await chart(page).focus();
  const heard: (string | null)[] = [];
  for (let n = 0; n < 3; n += 1) {
    heard.push(await chart(page).getAttribute("aria-valuetext"));
    await page.keyboard.press("ArrowLeft");
  }
  assert.match(heard[0] ?? "", /Service 0 was charged/);
  assert.match(heard[1] ?? "", /Service 0 was charged.*Load test of search$/);
  assert.match(heard[2] ?? "", /Restated .* by \+\$20\.50: The provider changed the bill$/);
  assert.match(await page.locator(".tip").innerText(), /\$/);
  await found.open("acme/costs?period=7d&identity_id=sa-1");
  await marks("note").waitFor();
  assert.deepEqual([await marks("stands-out").count(), await marks("restated").count()], [0, 0]);
  await leave(found);
});

test("a note is written, changed only if it is still what was shown, and removed", async () => {
  const found = await over(acme());
  const { page } = found;
  const sent: unknown[] = [];
  await page.route("**/notes**", (route) => {
    const request = route.request();
    if (request.method() === "GET" && !/notes\/1$/.test(request.url())) return route.fallback();
    if (request.method() !== "GET")
      sent.push([request.method(), request.headers()["if-match"], request.postDataJSON()]);
    return route.fulfill({ json: { id: "1", version: sent.length ? 1 : 2 }, headers: { ETag: '"1-a"' } });
  });
  await found.open("acme/costs?period=7d");
  await page.getByRole("button", { name: "Notes on these days" }).click();
  const notes = page.getByRole("dialog", { name: "Notes" });
  await notes.getByRole("listitem").filter({ hasText: "Load test of search" }).waitFor();
  assert.deepEqual(await findings(page, "all"), []);
  await notes.getByRole("button", { name: "Change Load test of search" }).click();
  await notes.getByLabel("Note").fill("Load test of payments");
  await notes.getByRole("button", { name: "Change the note" }).click();
  await notes.getByText("Somebody else has changed it meanwhile.").waitFor();
  await found.open("acme/costs?period=7d");
  await page.getByRole("button", { name: "Notes on these days" }).click();
  await notes.getByLabel("Note").fill("Migration");
  await notes.getByLabel("From").fill("2026-11-10");
  await notes.getByLabel("To").fill("2026-11-12");
  await notes.getByLabel("Your name").fill("Ann");
  await notes.getByRole("button", { name: "Add a note" }).click();
  await page.waitForFunction(
    () => document.querySelector<HTMLInputElement>("dialog, [popover] input[name=text]")?.value === "",
  );
  await notes.getByRole("button", { name: "Remove Load test of search" }).click();
  await notes.getByRole("button", { name: "Really remove? Load test of search" }).click();
  await page.waitForFunction(() => !document.querySelector(".notes button:disabled"));
  const body = { start_date: "2026-11-10", end_date: "2026-11-12", text: "Migration", created_by: "Ann" };
  assert.deepEqual(sent, [
    ["POST", undefined, body],
    ["DELETE", "*", {}],
  ]);
  await leave(found);
});
