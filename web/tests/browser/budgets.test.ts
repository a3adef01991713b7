/** Budgets are written on the page, and say what every other page says. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { pictures } from "./picture.ts";
import { ask } from "./service.ts";
import { close, findings, leave, visit } from "./world.ts";

interface Listed {
  items: { id: string; status: { period_id: string; to_date: string; data_through: string; state: string } }[];
}

after(close);

test("a budget is added, changed, followed to its costs and removed", async () => {
  const found = await visit("acme/budgets");
  const { page } = found;
  await page.getByText("None yet.").waitFor();
  assert.deepEqual(await findings(page, "all"), []);
  const fill = async (name: string, monthly: string, by = "", values = "") => {
    await page.getByRole("button", { name: "Add a budget" }).click();
    await page.getByLabel("Name").fill(name);
    await page.getByLabel("Of which costs").selectOption(by);
    await page.getByLabel(/With one of these values/).fill(values);
    await page.getByLabel("A month may cost").fill(monthly);
  };
  await fill("All of Kafka", "20000", "product_category", "KAFKA");
  assert.deepEqual(await findings(page, "all"), []);
  await page.getByRole("button", { name: "Add it" }).click();
  const rows = page.getByRole("region", { name: "Table of budgets" }).locator("tbody tr");
  await rows.filter({ hasText: "All of Kafka" }).waitFor();
  await fill("Everything", "3000");
  await page.getByRole("button", { name: "Add it" }).click();
  const whole = rows.filter({ hasText: "Everything" });
  await whole.filter({ hasText: "more than the budget" }).waitFor();
  assert.match((await whole.textContent()) ?? "", /80 % charged, 100 % charged/);
  assert.deepEqual(await findings(page, "all"), []);
  await pictures(page, "budgets");

  await whole.getByRole("button", { name: "Edit Everything" }).click();
  await page.getByLabel("A month may cost").fill("nothing");
  await page.getByRole("button", { name: "Change it" }).click();
  await page
    .getByRole("status")
    .filter({ hasText: /monthly/ })
    .waitFor();
  await page.getByLabel("A month may cost").fill("10000000");
  await page.getByRole("button", { name: "Change it" }).click();
  await whole.filter({ hasNotText: "more than the budget" }).waitFor();

  const { items } = await ask<Listed>("tenants/acme/budgets");
  const { status } = items.find((each) => each.id === "everything") ?? {};
  assert.ok(status);
  const days = `start_date=${status.period_id}-01&end_date=${status.data_through}`;
  const sums = await ask<{ total_amount: string }>(`tenants/acme/chargebacks/aggregate?${days}&time_bucket=month`);
  assert.equal(status.to_date, sums.total_amount);

  await rows.getByRole("link", { name: "All of Kafka" }).click();
  await page.waitForURL(/costs\?.*product_category=KAFKA/);
  await page.goBack();
  await page.getByRole("button", { name: "From a file" }).click();
  const file = (text: string) =>
    page
      .getByLabel("File", { exact: true })
      .setInputFiles({ name: "b.csv", mimeType: "text/csv", buffer: Buffer.from(text) });
  await file("id,name,monthly\neverything,Everything,much\n");
  await page
    .getByRole("alert")
    .filter({ hasText: /line 2: monthly: should be an amount/ })
    .waitFor();
  await file("id,name,monthly\neverything,Everything,4000\nsmall,Small,10\n");
  await page.getByText("New: small").waitFor();
  await page.getByText("Changed: everything").waitFor();
  assert.deepEqual(await findings(page, "all"), []);
  await page.getByRole("button", { name: "Write 2 budgets" }).click();
  await rows.filter({ hasText: "Small" }).waitFor();

  await found.open("acme/costs?period=month");
  await page.getByText("the budget Everything, by day").waitFor();
  assert.ok(await page.locator(".chart .limit").count());
  assert.deepEqual(await findings(page, "all"), []);
  await pictures(page, "budget-line");
  await found.open("acme/budgets");
  for (const name of ["Everything", "All of Kafka", "Small"]) {
    const row = rows.filter({ hasText: name });
    await row.getByRole("button", { name: /^Remove/ }).click();
    await row.getByRole("button", { name: /^Really remove/ }).click();
    await row.waitFor({ state: "detached" });
  }
  assert.deepEqual((await ask<Listed>("tenants/acme/budgets")).items, []);
  await leave(found);
});
