/** From a cost to why it is so, and from a change to what it comes from. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Answered } from "../../src/api/address";
import type { Explained, Page, Policy, Row } from "../../src/api/shapes";
import { acme } from "./fake.ts";
import { ask, exact } from "./service.ts";
import { type Answers, close, findings, hasAsked, leave, over, overflow, problem, type World } from "./world.ts";

type Changes = Answered<"/chargebacks/changes">;

after(close);

async function visit(path: string, answers: Answers = {}): Promise<World> {
  const found = await over(acme(), answers);
  await found.open(path);
  return found;
}

const focused = ({ page }: World) => page.evaluate(() => document.activeElement?.textContent ?? "");

test("why this amount: the dialog holds the focus and gives it back", async () => {
  const found = await visit("acme/rows?period=7d");
  const { page } = found;
  await page
    .getByRole("button", { name: /why this amount/ })
    .nth(2)
    .focus();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog", { name: "Why this amount?" });
  const { items } = await ask<Page<Row>>("tenants/acme/chargebacks?period=7d");
  const told = await ask<Explained>(`tenants/acme/${items[2]?.metadata.explain}`);
  await dialog.getByText(told.sentence).waitFor();
  assert.equal(await dialog.locator(".steps > li").count(), 5);
  assert.equal((await dialog.locator(".whole").textContent())?.replaceAll(",", ""), told.row?.amount);
  assert.ok((await dialog.textContent())?.includes(told.line_id));
  const policies = await ask<Page<Policy>>("tenants/acme/policies");
  const [policy] = policies.items;
  const name = "policy" in told ? told.policy?.product_type : "";
  await dialog.getByText(`policy ${name}, as shipped (${policy?.hash})`).click();
  await dialog.getByText("It comes with the service.").waitFor();
  assert.deepEqual(await dialog.locator(".portions code").allTextContents(), policy?.portions[0]?.methods);
  assert.deepEqual(await findings(page, "all"), []);
  await page.keyboard.press("Escape");
  assert.match(await focused(found), /why this amount/);
  await leave(found);
});

test("why it changed: sentences and effects of what changed most, at every width", async () => {
  const found = await visit("acme/costs?period=7d");
  const { page } = found;
  const button = page.getByRole("button", { name: "why did it change?" });
  await button.focus();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog", { name: "Why did it change?" });
  const asked = "/chargebacks/changes?period=7d&compare=previous&group_by=category:cost_center";
  const { items, totals } = await ask<Changes>(`tenants/acme${asked}`);
  await dialog.getByText(items[0]?.sentence ?? "").waitFor();
  await hasAsked(found, (each) => each.includes(asked));
  assert.equal(await dialog.locator(".whole").getAttribute("title"), exact(totals.delta));
  assert.equal(await dialog.locator(".reasons > li").count(), items.length);
  const first = dialog.locator(".reasons > li").first();
  await first.locator("summary").click();
  const shown = Object.values(items[0]?.effects ?? {}).filter((each) => each !== "0.00");
  const titles = await first.locator(".amount").evaluateAll((all) => all.map((each) => each.getAttribute("title")));
  assert.deepEqual(new Set(titles), new Set(shown.map((each) => exact(each))));
  for (const width of [1440, 320]) {
    await page.setViewportSize({ width, height: 900 });
    assert.equal(await overflow(page), 0, `${width} px`);
  }
  assert.deepEqual(await findings(page), []);
  await page.keyboard.press("Escape");
  assert.match(await focused(found), /why did it change/);
  await found.go("acme/costs?period=7d&compare=none");
  await button.waitFor({ state: "detached" });
  await leave(found);
});

test("why it changed: an error is told, and another try is offered", async () => {
  let broken = true;
  const found = await visit("acme/costs?period=7d", {
    "/chargebacks/changes": (route) => (broken ? problem(route, 404, "It is not here") : route.fallback()),
  });
  await found.page.getByRole("button", { name: "why did it change?" }).click();
  const dialog = found.page.getByRole("dialog", { name: "Why did it change?" });
  await dialog.getByText("It is not here").waitFor();
  broken = false;
  await dialog.getByRole("button", { name: "Try again" }).click();
  await dialog.locator(".reasons > li").first().waitFor();
  await leave(found);
});
