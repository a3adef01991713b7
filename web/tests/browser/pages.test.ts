/** Every page, as it is looked at: both themes, all widths, axe, and nobody else asked. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { PAGES } from "./addresses.ts";
import { acme } from "./fake.ts";
import { ARTIFACTS, picture, still } from "./picture.ts";
import { close, findings, leave, over, overflow, reader, type World } from "./world.ts";

/** How each page is looked at, one after the other; colours move nothing, so that each theme is measured at one width. */
const LOOKS = [
  ["light", 1440],
  ["light", 768],
  ["light", 360],
  ["dark", 320],
  ...(ARTIFACTS
    ? ([
        ["dark", 360],
        ["dark", 1440],
      ] as const)
    : []),
] as const;

async function look({ page }: World, name: string): Promise<void> {
  for (const [colorScheme, width] of LOOKS) {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize({ width, height: 900 });
    await still(page);
    if (name === "part") await page.getByRole("button", { name: /Who I am/ }).click();
    assert.equal(await overflow(page), 0, `${width} px`);
    if ([1440, 320].includes(width) && !(colorScheme === "dark" && width === 1440))
      assert.deepEqual(await findings(page, "all"), [], `${colorScheme}, ${width} px`);
    if ([1440, 360].includes(width)) await picture(page, `${name}-${colorScheme}-${width}.png`);
    await page.keyboard.press("Escape");
  }
}

let found: World;
before(async () => {
  found = await over(acme());
  await found.open("acme/costs?period=7d");
});
after(close);

for (const [name, path] of Object.entries(PAGES))
  test(`${name} is accessible, fits every width and asks nobody else, in light and dark`, async () => {
    await found.page.setViewportSize({ width: 1440, height: 900 });
    await found.go(path);
    await look(found, name);
    assert.deepEqual(found.complaints.splice(0), []);
  });

test("a part of the bill is accessible, fits every width and asks nobody else, in light and dark", async () => {
  const scope = { "category:cost_center": ["payments"] };
  const me = reader(["read", "export"], scope, { groups: ["unit-commerce"] });
  const part = await over({ ...acme(), me });
  await part.open("acme/costs?period=7d");
  await look(part, "part");
  await leave(part);
});
