import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { after, describe, test } from "node:test";
import { close, findings, overflow, world } from "./world.ts";

const PAGES: Record<string, string> = {
  costs: "acme/costs?period=7d",
  table: "acme/costs?period=7d&table=1.changed.days&by=product_type",
  item: "acme/item?period=7d&identity_id=sa-57i4nz",
  bill: "acme/bill?period=7d",
  rows: "acme/rows?period=7d",
  lines: "acme/rows?period=7d&tab=lines&identity_id=sa-57i4nz",
  topics: "acme/topics?period=7d",
  map: "acme/map?period=7d",
  unowned: "acme/unowned?period=7d",
  days: "acme/days?period=7d",
  tags: "acme/tags?period=7d",
  views: "acme/views",
};
const ARTIFACTS = process.env.ARTIFACTS;

after(close);
if (ARTIFACTS) mkdirSync(ARTIFACTS, { recursive: true });

for (const colorScheme of ["light", "dark"] as const)
  describe(`in ${colorScheme}`, () => {
    for (const [name, path] of Object.entries(PAGES))
      test(`${name} is accessible, fits every width and asks nobody else`, async () => {
        const { page, complaints, open, close: leave } = await world({ colorScheme });
        await open(path);
        for (const width of [1440, 768, 360, 320]) {
          await page.setViewportSize({ width, height: 900 });
          assert.equal(await overflow(page), 0, `${width} px`);
          // What differs in the dark is the contrast.
          if (colorScheme === "light" && [1440, 320].includes(width))
            assert.deepEqual(await findings(page), [], `${width} px`);
          if (colorScheme === "dark" && width === 1440) assert.deepEqual(await findings(page, "color-contrast"), []);
          if (ARTIFACTS && (name === "costs" ? [1440, 360] : colorScheme === "light" ? [1440] : []).includes(width))
            await page.screenshot({ path: `${ARTIFACTS}/${name}-${colorScheme}-${width}.png`, fullPage: true });
        }
        assert.deepEqual(complaints, []);
        await leave();
      });
  });
