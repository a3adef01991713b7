import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Route } from "playwright-core";
import { close, findings, hasAsked, overflow, problem, RECORDED, type World, world } from "./world.ts";

after(close);

async function recorded(path: string, answers = {}): Promise<World> {
  const found = await world({}, answers);
  await found.open(path);
  return found;
}

test("why this amount: the dialog holds the focus and gives it back", async () => {
  const { page, close: leave } = await recorded("acme/rows?period=7d");
  const row = page.getByRole("button", { name: /why this amount/ }).nth(2);
  await row.focus();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog", { name: "Why this amount?" });
  await dialog.waitFor();
  const { sentence, row: told, line_id } = RECORDED.explain;
  await dialog.getByText(sentence).waitFor();
  assert.equal(await dialog.locator(".steps > li").count(), 5);
  assert.equal((await dialog.locator(".whole").textContent())?.replaceAll(",", ""), told.amount.replace(/0+$/, ""));
  assert.ok((await dialog.textContent())?.includes(line_id));
  const { items } = RECORDED.policies;
  await dialog.getByText(`policy ${items[0].product_type}, as shipped (${items[0].hash})`).click();
  await dialog.getByText("It comes with the service.").waitFor();
  assert.deepEqual(await dialog.locator(".portions code").allTextContents(), items[0].portions[0].methods);
  assert.deepEqual(await findings(page, "all"), []);
  await page.keyboard.press("Escape");
  assert.match((await page.evaluate(() => document.activeElement?.textContent)) ?? "", /why this amount/);
  await leave();
});

test("why it changed: sentences and effects of what changed most, at every width", async () => {
  const { page, asked, complaints, close: leave } = await recorded("acme/costs?period=7d");
  const button = page.getByRole("button", { name: "why did it change?" });
  await button.focus();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog", { name: "Why did it change?" });
  const { items, totals } = RECORDED.changes;
  await dialog.getByText(items[0].sentence).waitFor();
  await hasAsked({ page, asked }, (each) =>
    each.includes("/chargebacks/changes?period=7d&compare=previous&group_by=tag:team"),
  );
  const exact = (text: string) => `USD ${text.replace("-", "−")}`;
  assert.equal(await dialog.locator(".whole").getAttribute("title"), exact(totals.delta));
  assert.equal(await dialog.locator(".reasons > li").count(), items.length);
  const first = dialog.locator(".reasons > li").first();
  await first.locator("summary").click();
  const shown = Object.values<string>(items[0].effects).filter((each) => each !== "0.00");
  const titles = await first.locator(".amount").evaluateAll((all) => all.map((each) => each.getAttribute("title")));
  assert.deepEqual(new Set(titles), new Set(shown.map(exact)));
  for (const width of [1440, 320]) {
    await page.setViewportSize({ width, height: 900 });
    assert.equal(await overflow(page), 0, `${width} px`);
    assert.deepEqual(await findings(page), [], `${width} px`);
  }
  await page.keyboard.press("Escape");
  assert.match((await page.evaluate(() => document.activeElement?.textContent)) ?? "", /why did it change/);
  assert.deepEqual(complaints, []);
  await leave();
});

test("why it changed: an error is told, and another try is offered", async () => {
  let broken = true;
  const { page, close: leave } = await recorded("acme/costs?period=7d", {
    changes: (route: Route) =>
      broken ? problem(route, 404, "It is not here") : route.fulfill({ json: RECORDED.changes }),
  });
  await page.getByRole("button", { name: "why did it change?" }).click();
  const dialog = page.getByRole("dialog", { name: "Why did it change?" });
  await dialog.getByText("It is not here").waitFor();
  broken = false;
  await dialog.getByRole("button", { name: "Try again" }).click();
  await dialog.getByText(RECORDED.changes.items[0].sentence).waitFor();
  await leave();
});

test("without another period there is nothing to explain", async () => {
  const costs = { ...RECORDED.costs, compared_with: null };
  const { page, close: leave } = await recorded("acme/costs?period=7d&compare=none", {
    costs: (route: Route) => route.fulfill({ json: costs }),
  });
  assert.equal(await page.getByRole("button", { name: "why did it change?" }).count(), 0);
  await leave();
});
