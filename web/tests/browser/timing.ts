/**
 * How long the costs page takes to its last chart, from the address to the pixels: `node tests/browser/timing.ts`.
 *
 * BASE is where the page is, PATHS a list of addresses below it as JSON. Each is opened twice: by a browser that has
 * never seen the page, and, at the next address, by one that has kept its files. Prints one line of JSON per opening.
 */
import { close, real, type World } from "./world.ts";

interface Opening {
  path: string;
  cold: boolean;
  /** Milliseconds from the start of the navigation until the last chart is on the screen. */
  drawn: number;
  /** The page's question about costs, without the host. */
  question: string;
}

async function open(found: World, path: string, cold: boolean): Promise<Opening> {
  const { page, asked } = found;
  await page.goto((process.env.BASE ?? "") + path);
  const drawn = await page.waitForFunction(() => document.documentElement.dataset.drawn, null, { timeout: 60_000 });
  const question = asked.findLast((each) => each.includes("/costs?")) ?? "";
  return { path, cold, drawn: Number(await drawn.jsonValue()), question };
}

/** Notes in the page when its first and last chart stand, and no figure is one of before. */
function watch(): void {
  const look = () => {
    const charts = document.querySelector(".overtime svg path") && document.querySelector(".months [data-day]");
    if (!charts || document.querySelector("[aria-busy=true]")) requestAnimationFrame(look);
    // What was rendered in this frame is on the screen when the next one begins.
    else
      requestAnimationFrame(() => {
        document.documentElement.dataset.drawn = String(performance.now());
      });
  };
  addEventListener("DOMContentLoaded", look);
}

const paths: string[] = JSON.parse(process.env.PATHS ?? "[]");
for (let n = 0; n + 1 < paths.length; n += 2) {
  const found = await real();
  await found.page.addInitScript(watch);
  for (const [place, cold] of [
    [n, true],
    [n + 1, false],
  ] as const)
    console.log(JSON.stringify(await open(found, paths[place] ?? "", cold)));
  if (found.complaints.length) throw new Error(found.complaints.join("; "));
  await found.close();
}
await close();
