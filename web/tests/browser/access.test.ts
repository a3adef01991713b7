/** Readers who may see or do only a part: what is theirs, what is not, and that the page says so. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Explained, Me, Scope } from "../../src/api/shapes";
import { acme } from "./fake.ts";
import { type Answers, BASE, close, findings, leave, over, overflow, problem, reader, type World } from "./world.ts";

const PERIOD = "period=7d";
const SCOPE: Scope = { "category:cost_center": ["payments", "search"] };
/** What is about the whole bill, which a reader of a part of it may not ask for. */
const OF_THE_WHOLE =
  /\/(reconciliation|runs|audit|usage|revisions|coverage|history|resolve|rules\.csv)$|\/cost-categories\/[^/]+$/;

after(close);

/** A window of a reader; `answers` take the place of what that reader would be answered. */
const as = (me: Me, answers: Answers = {}): Promise<World> => over({ ...acme(), me }, answers);

const wholeAsked = ({ asked }: World) => asked.filter((each) => OF_THE_WHOLE.test(each.split("?")[0] ?? ""));

test("who I am, what I see and what I may do is one button away", async () => {
  const found = await as(reader(["read", "export"], SCOPE));
  const { page } = found;
  await found.open(`acme/costs?${PERIOD}`);
  const button = page.getByRole("button", { name: "Who I am: alice@example.com" });
  await button.press("Enter");
  const card = page.getByRole("dialog", { name: "Who I am" });
  await card.getByText("signed in at the proxy").waitFor();
  const told = (await card.innerText()).replace(/\s+/g, " ");
  assert.match(told, /Groups team-payments In acme, I see only what has Cost centre: payments or search/);
  assert.match(told, /I may see costs and their reasons download files not: change tags not: start runs/);
  assert.match(told, /Given by access\.roles\[2\] in the configuration\./);
  assert.deepEqual(await findings(page), []);
  await page.keyboard.press("Escape");
  await card.waitFor({ state: "hidden" });
  assert.ok(await button.evaluate((element) => element === document.activeElement));
  for (const width of [768, 320]) {
    await page.setViewportSize({ width, height: 900 });
    assert.equal(await overflow(page), 0, `${width} px`);
  }
  await leave(found);
});

test("where nobody is told apart, nothing is said of it, and everything is there", async () => {
  const found = await over(acme());
  await found.open(`acme/days?${PERIOD}`);
  assert.equal(await found.page.getByText("Who I am").count(), 0);
  await found.page.getByRole("button", { name: "Run now" }).waitFor();
  await found.open(`acme/costs?${PERIOD}`);
  await found.page.locator("a[download]").first().waitFor();
  await leave(found);
});

test("a part of the bill: it is named beside the filters and in place of the comparison with the whole", async () => {
  const found = await as(reader(["read"], SCOPE));
  const { page } = found;
  await found.open(`acme/costs?${PERIOD}&environment_id=env-1`);
  const search = page.getByRole("search", { name: "Period and filters" });
  await search.getByText("You see only: Cost centre payments or search").waitFor();
  assert.equal(await search.getByRole("link", { name: /Remove: Cost centre/ }).count(), 0);
  await page.getByRole("region", { name: "What you see" }).getByText("All figures are of this part").waitFor();
  assert.equal(await page.getByRole("heading", { name: "Against the bill" }).count(), 0);
  assert.equal(await page.getByRole("heading", { name: "Days", exact: true }).count(), 0);
  assert.deepEqual(wholeAsked(found), []);
  await leave(found);
});

test("pages about the whole bill are absent for a reader of a part, and say why at their address", async () => {
  const found = await as(reader(["read", "export", "tag", "run", "admin"], SCOPE));
  const { page } = found;
  await found.open(`acme/costs?${PERIOD}`);
  const navigation = page.getByRole("navigation", { name: "Places" });
  await navigation.getByRole("link", { name: "Health" }).waitFor({ state: "detached" });
  await navigation.getByRole("link", { name: "Ownership" }).click();
  const pages = page.getByRole("navigation", { name: "Pages of Ownership" });
  assert.deepEqual(await pages.getByRole("link").allTextContents(), ["Unowned", "Tags"]);
  await page.keyboard.press("?");
  await page.getByText("Find anything").first().waitFor();
  assert.equal(await page.getByRole("dialog", { name: "Help" }).getByText("Cost categories").count(), 0);
  await page.keyboard.press("Escape");
  await page.waitForURL((url) => !url.searchParams.has("help"));
  for (const name of ["days", "categories/cost_center", "categories"]) {
    await found.open(`acme/${name}?${PERIOD}`);
    await page.getByRole("heading", { name: "This page is about the whole bill" }).waitFor();
    await page.getByText("You see a part of it: Cost centre is payments or search.").waitFor();
    if (name === "days") assert.deepEqual(await findings(page, "all"), []);
    await page.getByRole("link", { name: "To your costs" }).click();
    await page.waitForURL(/\/acme\/costs/);
  }
  const others = ["bill", "unowned", "topics", "units", "findings", "rows", "tags", "map", "views"];
  for (const name of ["item?identity_id=sa-2", ...others])
    await found.go(`acme/${name}${name.includes("?") ? "&" : "?"}${PERIOD}`);
  assert.deepEqual(wholeAsked(found), []);
  await leave(found);
});

test("who may only read is offered no files, tags and runs, and is told which right is missing", async () => {
  const found = await as(reader(["read"]));
  const { page } = found;
  await found.open(`acme/views`);
  for (const name of ["costs", "bill", "rows", "topics"]) {
    await found.go(`acme/${name}?${PERIOD}`);
    await page.getByRole("button", { name: /Who I am/ }).waitFor();
    assert.equal(await page.locator("a[download]").count(), 0, name);
  }
  await found.go(`acme/days?${PERIOD}`);
  await page.getByText("You may not start runs: your role has no right “run”.").waitFor();
  assert.equal(await page.getByRole("button", { name: "Run now" }).count(), 0);
  await page
    .getByText(/Equal to the last digit|not equal/)
    .first()
    .waitFor();
  for (const name of ["tags", "unowned"]) {
    await found.go(`acme/${name}?${PERIOD}`);
    await page.getByText("You may not change tags: your role has no right “tag”.").waitFor();
    assert.equal(await page.getByRole("button", { name: /Preview|Remove/ }).count(), 0);
  }
  await found.go(`acme/categories?${PERIOD}`);
  await page.getByText("You may not change cost categories: your role has no right “admin”.").waitFor();
  assert.equal(await page.getByRole("button", { name: /^(Begin|Edit|New)/ }).count(), 0);
  await leave(found);
});

test("who is known is not asked for a name, and changes are made under it", async () => {
  const found = await as(reader(["read", "tag"]));
  const { page } = found;
  let author: unknown;
  await page.route("**/tags/bulk", (route) => {
    author = route.request().postDataJSON().created_by;
    return problem(route, 403, "Not allowed", "alice@example.com may not change tags of acme: roles[2] allows read.");
  });
  await found.open(`acme/unowned?${PERIOD}`);
  await page.getByRole("checkbox", { name: /prod-enterprise-1/ }).check();
  await page.getByRole("combobox", { name: "Value" }).fill("payments");
  assert.equal(await page.getByLabel("Your name").count(), 0);
  await page.getByRole("button", { name: "Preview" }).click();
  // A role that was changed in the meantime: the service's own sentence says why.
  await page.getByText("alice@example.com may not change tags of acme: roles[2] allows read.").waitFor();
  await page.getByText("HTTP 403").waitFor();
  assert.equal(author, "alice@example.com");
  await leave(found);
});

test("without an identity: one sentence of the service on every address, and no figure", async () => {
  const detail = "The request has no identity: sign in at the proxy in front of this service.";
  const found = await over(acme());
  await found.page.route("**/api/v1/**", (route) => problem(route, 401, "No identity", detail));
  for (const path of ["", `acme/costs?${PERIOD}`, `acme/days?${PERIOD}`]) {
    await found.page.goto(BASE + path);
    await found.page.getByRole("heading", { name: "You are not signed in" }).first().waitFor();
    await found.page.getByText(detail).first().waitFor();
    assert.ok(!(await found.page.textContent("body"))?.includes("$"));
  }
  assert.deepEqual(await findings(found.page, "all"), []);
  await leave(found);
});

test("somebody without a role, and a tenant that is not the reader's", async () => {
  const stranger = await as(reader([], null, { tenants: [] }), {
    "/tenants": (route) => route.fulfill({ json: [] }),
  });
  await stranger.page.goto(BASE);
  await stranger.page.getByText("No role of this service lets you see a tenant.").waitFor();
  await stranger.page.getByText("You are signed in as alice@example.com, in the group team-payments.").waitFor();
  await leave(stranger);

  const found = await as(reader(["read"]));
  await found.page.goto(`${BASE}globex/costs?${PERIOD}`);
  await found.page.getByText("There is no tenant “globex”").waitFor();
  await found.page.getByText("Or there is one, and no role lets you see it.").waitFor();
  await found.page.getByRole("link", { name: "acme", exact: true }).waitFor();
  await leave(found);
});

test("others who share an amount are one line, which leads nowhere", async () => {
  const found = await as(reader(["read"], SCOPE), {
    "/chargebacks/explain": async (route) => {
      const told: Explained = await (await route.fetch()).json();
      const contenders = [
        ...(told.evidence?.contenders.slice(0, 1) ?? []),
        { identity_id: null, value: "9", ratio: "0.9" },
      ];
      return route.fulfill({ json: { ...told, evidence: { ...told.evidence, contenders, contenders_total: 2 } } });
    },
  });
  const { page } = found;
  await found.open(`acme/rows?${PERIOD}`);
  await page
    .getByRole("button", { name: /why this amount/ })
    .first()
    .click();
  const shares = page.getByRole("region", { name: "Who shares it" });
  const others = shares.getByRole("row").filter({ hasText: "Others" });
  await others.waitFor();
  assert.equal(await others.getByRole("button").count(), 0);
  await leave(found);
});

test("a part of the page that is not let through: the page says so, and loads again", async () => {
  const found = await over(acme());
  const { page } = found;
  let closed = true;
  await page.route(/assets\/bill-.*\.js$/, (route) => (closed ? route.abort() : route.continue()));
  await found.open(`acme/costs?${PERIOD}`);
  await page.getByRole("navigation", { name: "Places" }).getByRole("link", { name: "Bill" }).click();
  await page.getByRole("heading", { name: "A part of the page could not be loaded" }).waitFor();
  assert.deepEqual(await findings(page), []);
  closed = false;
  await page.getByRole("button", { name: "Try again" }).click();
  await page
    .getByRole("heading", { name: /^Bill of acme, / })
    .first()
    .waitFor();
  await found.close();
});
