/** What stands out leads to its explanation, and what is known of it is said on the page. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { acme } from "./fake.ts";
import { close, findings, leave, over } from "./world.ts";

after(close);

test("from what stands out to the explanation of what it comes from", async () => {
  const found = await over(acme());
  const { page, asked } = found;
  await found.open("acme/anomalies");
  // Everything is called by its name.
  assert.doesNotMatch(await page.locator("main").innerText(), /lkc-|sa-/);
  await page.getByRole("cell", { name: "prod-enterprise-1" }).waitFor();
  await page.getByRole("link", { name: "Kafka CKUs of prod-dedicated-0" }).click();
  await page.getByRole("heading", { name: "Why this amount?" }).waitFor();
  const question = "/chargebacks/explain?date=2026-11-15&line_id=2026-11-15.lkc-0.KAFKA_NUM_CKUS&identity_id=sa-0";
  assert.ok(asked.some((each) => each.includes(question)));
  await leave(found);
});

test("days are marked as planned, with a reason and until a day", async () => {
  const found = await over(acme());
  const { page } = found;
  await found.open("acme/anomalies");
  let sent: unknown;
  await page.route("**/anomalies/marks", (route) => {
    sent = route.request().postDataJSON();
    return route.fulfill({ status: 201, json: {} });
  });
  await page.getByRole("button", { name: /^Expected\?/ }).click();
  await page.getByRole("heading", { name: "What is known of Service 0" }).waitFor();
  assert.deepEqual(await findings(page, "all"), []);
  await page.getByLabel("It was").selectOption({ label: "Planned: somebody wanted it" });
  await page.getByLabel("Until and with this day").fill("2026-11-20");
  await page.getByLabel("Why").fill("Load test");
  await page.getByLabel("Your name").fill("Ann");
  await page.getByRole("button", { name: "Say so" }).click();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  assert.deepEqual(sent, {
    identity_id: "sa-0",
    category: null,
    value: null,
    product_category: "KAFKA",
    status: "planned",
    start_date: "2026-11-15",
    end_date: "2026-11-20",
    note: "Load test",
    created_by: "Ann",
  });
  await leave(found);
});
