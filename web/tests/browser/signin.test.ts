/** Signing in at a real provider through a real Apache, and a page with nothing but one's own part of the bill. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Aggregate } from "../../src/api/shapes";
import { ask, costsOf, exact } from "./service.ts";
import { close, findings, real, settled, type World } from "./world.ts";

/** Where Apache serves the page; `BASE` is the same data on the machine itself, where nobody is told apart. */
const SIGNIN = process.env.SIGNIN ?? "";
const ISSUER = process.env.ISSUER ?? "";
const PERIOD = "period=10d";
const OWN = "category:cost_center=payments";

after(close);

/** A fresh window of somebody who is sent to the provider, signs in there, and comes back to where they wanted to go. */
async function signedIn(sub: string, path: string): Promise<World> {
  const found = await real({ ignoreHTTPSErrors: true }, SIGNIN);
  const { page } = found;
  // The provider's own form would like to load a style from elsewhere.
  await page.route(/jsdelivr/, (route) => route.abort());
  await page.goto(SIGNIN + path);
  assert.ok(page.url().startsWith(ISSUER), page.url());
  await page.getByPlaceholder("sub").fill(sub);
  await page.getByRole("button", { name: "Authorize" }).click();
  await page.waitForURL(SIGNIN + path);
  await settled(page);
  // What its form did is not the page's.
  found.complaints.length = 0;
  return found;
}

async function leave({ page, complaints, close: end }: World): Promise<void> {
  assert.deepEqual(await findings(page, "all"), []);
  assert.deepEqual(complaints, []);
  await end();
}

test("who comes back from the provider sees the costs of their team, exactly", async () => {
  const own = await costsOf("acme", `${PERIOD}&${OWN}`);
  const whole = await costsOf("acme", PERIOD);
  assert.notEqual(own.total.amount, whole.total.amount);
  const found = await signedIn("alice", `acme/costs?${PERIOD}`);
  const { page } = found;
  assert.equal(await page.locator(".lead").getAttribute("title"), exact(own.total.amount));
  await page.getByRole("button", { name: "Who I am: alice@example.com" }).click();
  const card = page.getByRole("dialog", { name: "Who I am" });
  await card.getByText("only what has Cost centre: payments").waitFor();
  await card.getByText("signed in at the proxy").waitFor();
  await page.keyboard.press("Escape");
  await leave(found);
});

test("no page names anybody who is outside of the scope", async () => {
  const query = `${PERIOD}&group_by=identity_id&names=true`;
  const [all, own] = await Promise.all(
    [query, `${query}&${OWN}`].map((each) => ask<Aggregate>(`tenants/acme/chargebacks/aggregate?${each}`)),
  );
  const idsOf = (answer: Aggregate | undefined) =>
    new Set((answer?.buckets ?? []).map((each) => String(each.dimensions.identity_id)));
  const mine = idsOf(own);
  const others = [...idsOf(all)].filter((each) => !mine.has(each) && each !== "UNALLOCATED");
  assert.ok(mine.size > 0 && others.length > 5);
  const names = all?.names?.identity_id ?? {};
  const hidden = others.flatMap((each) => [each, names[each] ?? each]);

  const found = await signedIn("alice", `acme/costs?${PERIOD}`);
  const { page } = found;
  for (const name of ["costs", "bill", "rows", "rows?tab=lines", "topics", "map", "unowned", "tags", "views"]) {
    await found.open(`acme/${name}${name.includes("?") ? "&" : "?"}${PERIOD}`);
    const told = (await page.textContent("body")) ?? "";
    assert.deepEqual(
      hidden.filter((each) => told.includes(each)),
      [],
      name,
    );
    assert.equal(await page.getByRole("alert").count(), 0, name);
  }
  await found.open(`acme/item?${PERIOD}&identity_id=${encodeURIComponent(others[0] ?? "")}`);
  await page.getByText("No costs in this view").waitFor();
  await found.open(`acme/rows?${PERIOD}`);
  await page
    .getByRole("button", { name: /why this amount/ })
    .first()
    .click();
  const why = page.getByRole("dialog", { name: "Why this amount?" });
  await why.getByText("The amount").waitFor();
  const told = (await why.textContent()) ?? "";
  assert.deepEqual(
    hidden.filter((each) => told.includes(each)),
    [],
  );
  await page.keyboard.press("Escape");
  await leave(found);
});

test("what Apache lets pass only after a sign-in is told by the page when the session has ended", async () => {
  const found = await signedIn("frank", `acme/costs?${PERIOD}`);
  const { page } = found;
  const whole = await costsOf("acme", PERIOD);
  assert.equal(await page.locator(".lead").getAttribute("title"), exact(whole.total.amount));
  await page.context().clearCookies();
  await page.getByRole("navigation", { name: "Places" }).getByRole("link", { name: "Bill" }).click();
  await page.getByRole("heading", { name: "You are not signed in" }).first().waitFor();
  await page.getByText("Load the page again to sign in.").first().waitFor();
  await leave(found);
});
