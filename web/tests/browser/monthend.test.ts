/** A month is closed and opened again on the page, and the service has done it. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Page } from "playwright-core";
import type { ClosingPreview, Month, Months } from "../../src/api/shapes";
import { read } from "../../src/money/money.ts";
import { pictures } from "./picture.ts";
import { ask, exact } from "./service.ts";
import { BASE, close, findings, leave, visit } from "./world.ts";

const PERIODS = "tenants/acme/periods";

after(close);

/** Makes, changes or removes the cost category by which statements are kept. */
async function write(method: "PUT" | "DELETE", body?: object): Promise<void> {
  const address = new URL("../api/v1/tenants/acme/cost-categories/cost_center", BASE);
  const etag = (await fetch(address)).headers.get("ETag");
  const headers = { "Content-Type": "application/json", ...(etag && { "If-Match": etag }) };
  const found = await fetch(address, { method, headers, ...(body && { body: JSON.stringify(body) }) });
  assert.ok(found.ok, await found.text());
}

/** The booked month as statements, one of them with its lines, and the journal as a table. */
async function walkTheStatements(page: Page, period: string): Promise<void> {
  await page.getByRole("link", { name: "Statements", exact: true }).last().click();
  const list = page.getByRole("region", { name: "Statements" });
  await list.getByText("No reply").first().waitFor();
  await page.getByText(/, booked: \d+ open/).waitFor();
  const zip = await page.getByRole("link", { name: "All PDFs" }).getAttribute("href");
  assert.match(zip ?? "", new RegExp(`/statements\\.zip\\?period=${period}&by=`));
  assert.deepEqual(await findings(page, "all"), []);
  await pictures(page, "statements-booked");
  await list.locator("tbody").getByRole("link").first().click();
  const lines = page.getByRole("region", { name: "Lines" });
  await lines.getByRole("row").nth(1).waitFor();
  await page.getByText(/Booked: the month was closed/).waitFor();
  const down = await lines.getByRole("link").nth(1).getAttribute("href");
  assert.match(down ?? "", /rows\?.*product_type=/);
  await page.goBack();
  await page.getByRole("link", { name: "Journal", exact: true }).click();
  const journal = page.getByRole("region", { name: "Table of the journal" });
  await journal.getByText("CLEARING").waitFor();
  const [debit, credit] = await journal.locator("tfoot .num").allTextContents();
  assert.ok(debit && debit === credit, `${debit} ${credit}`);
  assert.deepEqual(await findings(page, "all"), []);
  await pictures(page, "journal");
}

test("a month is closed with what is in the way accepted, shows its receipt, and is opened again", async () => {
  await write("PUT", { document: { default: "payments" } });
  const before = await ask<Months>(PERIODS);
  const chosen = before.items.find((each) => each.state !== "accruing");
  assert.ok(chosen, "a month is over");
  const period = chosen.period_id;
  const preview = await ask<ClosingPreview>(`${PERIODS}/${period}/closing-preview`);
  const found = await visit(`acme/month-end/${period}`);
  const { page } = found;
  const button = page.getByRole("button", { name: /^Close / });
  await button.waitFor();
  await pictures(page, "month-end");
  const says = (await button.textContent()) ?? "";
  const written = new Intl.NumberFormat("en-US", { style: "currency", currency: preview.currency });
  assert.ok(says.includes(written.format(preview.totals.posted as `${number}`)), says);
  assert.equal(await button.isDisabled(), preview.blockers.length > 0);
  const kinds = new Set(preview.blockers.map((each) => each.kind));
  const boxes = page.getByRole("checkbox", { name: "close it all the same" });
  assert.equal(await boxes.count(), kinds.size);
  for (const box of await boxes.all()) await box.check();
  await page.getByRole("textbox", { name: "Note for the receipt" }).fill("Closed on the page");
  await page.getByRole("textbox", { name: "Why this is accepted" }).fill("A short month");
  assert.deepEqual(await findings(page, "all"), []);
  await button.click();
  await page.getByRole("heading", { name: /is closed$/ }).waitFor();
  const closed = await ask<Month>(`${PERIODS}/${period}`);
  assert.deepEqual([closed.state, closed.digest], ["closed", preview.digest]);
  await page.getByText(preview.digest).waitFor();
  await page.getByText("Nothing: what is known of the month is what was booked.").waitFor();
  assert.deepEqual(await findings(page, "all"), []);
  await walkTheStatements(page, period);
  await page.goto(new URL(`acme/month-end/${period}`, BASE).href);

  const document = { default: "research" };
  await write("PUT", { document, restate_closed: true, reason: "Payments was the wrong one" });
  await page.reload();
  const moved = page.getByRole("region", { name: "Table of corrections" }).locator("tbody tr");
  await moved.first().waitFor();
  const shown = await moved.evaluateAll((rows) =>
    rows.map((row) => [row.querySelector("td")?.textContent, row.querySelector(".num")?.getAttribute("title")]),
  );
  const booked = read(closed.totals.regular);
  await pictures(page, "month-end-closed");
  assert.deepEqual(shown, [
    ["payments", exact(-booked)],
    ["research", exact(booked)],
  ]);
  await page.getByRole("button", { name: "Reopen" }).click();
  await page.getByRole("textbox", { name: "Why" }).fill("The walk is over");
  await page.getByRole("dialog").getByRole("button", { name: "Reopen" }).click();
  await button.waitFor();
  assert.notEqual((await ask<Month>(`${PERIODS}/${period}`)).state, "closed");
  await write("DELETE");
  await leave(found);
});
