/** From an alert in Alertmanager to the explanation of the largest thing it comes from: two clicks. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { picture } from "./picture.ts";
import { close, real, settled } from "./world.ts";

after(close);

test("from an alert to its explanation", async () => {
  const alertmanager = process.env.ALERTMANAGER;
  assert.ok(alertmanager);
  const found = await real();
  const { page } = found;
  // Debian's package has no web page: what a mail or a chat would show is read from what it has been told.
  await page.goto(`${alertmanager}/api/v2/alerts`);
  await picture(page, "alert-0-alertmanager.png");
  const [alert] = JSON.parse((await page.locator("body").textContent()) ?? "[]");
  await page.setContent(`<p>${alert.annotations.summary}</p><a href="${alert.generatorURL}">Source</a>`);

  await page.getByRole("link", { name: "Source" }).click();
  await settled(page);
  await page.getByRole("heading", { name: "What stands out", level: 2 }).waitFor();
  await picture(page, "alert-1-what-stands-out.png");

  await page
    .getByRole("link", { name: /of lkc-1$/ })
    .first()
    .click();
  await page.getByRole("heading", { name: "Why this amount?" }).waitFor();
  await settled(page);
  await picture(page, "alert-2-why.png");
  assert.match((await page.getByRole("dialog").textContent()) ?? "", /225\.00/);
  await found.close();
});
