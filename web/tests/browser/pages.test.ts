import assert from "node:assert/strict";
import { after, test } from "node:test";
import { ARTIFACTS, picture, still } from "./picture.ts";
import { type Answers, as, close, findings, overflow, reader, WITH_CATEGORY, world } from "./world.ts";

const PAGES: Record<string, string> = {
  costs: "acme/costs?period=7d",
  anomalies: "acme/anomalies?period=7d",
  table: "acme/costs?period=7d&table=1.changed.days&by=product_type",
  item: "acme/item?period=7d&identity_id=sa-57i4nz",
  bill: "acme/bill?period=7d",
  statements: "acme/statement?period=2026-11&by=category:cost_center",
  statement: "acme/statement?period=2026-11&by=category:cost_center&value=payments",
  rows: "acme/rows?period=7d",
  lines: "acme/rows?period=7d&tab=lines&identity_id=sa-57i4nz",
  parts: "acme/rows?period=7d&tab=topics",
  topics: "acme/topics?period=7d",
  units: "acme/units?period=7d",
  findings: "acme/findings",
  map: "acme/map?period=7d",
  unowned: "acme/unowned?period=7d",
  days: "acme/days?period=7d",
  moments: "acme/moments?period=7d&from=2026-11-17T02:10:11Z",
  categories: "acme/categories/cost_center?period=7d",
  tags: "acme/tags?period=7d",
  views: "acme/views",
  part: "acme/costs?period=7d",
};
/** Pages that need more than the usual answers. */
const ANSWERS: Record<string, Answers> = {
  categories: WITH_CATEGORY,
  part: as(reader(["read", "export"], { "category:business_unit": ["commerce"] }, { groups: ["unit-commerce"] })),
};
/** How each page is looked at, one after the other. Colours move nothing: the dark is for contrast and for pictures. */
const LOOKS = [
  ["light", 1440],
  ["dark", 1440],
  ["light", 768],
  ["light", 360],
  ["light", 320],
  ...(ARTIFACTS ? ([["dark", 360]] as const) : []),
] as const;

after(close);

for (const [name, path] of Object.entries(PAGES))
  test(`${name} is accessible, fits every width and asks nobody else, in light and dark`, async () => {
    const { page, complaints, open, close: leave } = await world({ colorScheme: "light" }, ANSWERS[name]);
    await open(path);
    for (const [colorScheme, width] of LOOKS) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 900 });
      await still(page);
      if (name === "part") await page.getByRole("button", { name: /Who I am/ }).click();
      assert.equal(await overflow(page), 0, `${width} px`);
      if (width === 1440) assert.deepEqual(await findings(page, "contrast"), [], colorScheme);
      if (colorScheme === "light" && [1440, 320].includes(width))
        assert.deepEqual(await findings(page), [], `${width} px`);
      if ([1440, 360].includes(width)) await picture(page, `${name}-${colorScheme}-${width}.png`);
      await page.keyboard.press("Escape");
    }
    assert.deepEqual(complaints, []);
    await leave();
  });
