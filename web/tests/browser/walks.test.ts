/** Four persons, each on the way of theirs: over a good network, over a slow one, and over one that breaks at every step. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Locator, Page, Route } from "playwright-core";
import { add } from "../../src/calendar/days.ts";
import { acme, finding, type Organisation } from "./fake.ts";
import { pictures } from "./picture.ts";
import { type Answers, BASE, become, close, farAway, leave, over, overflow, reader, settled } from "./world.ts";

after(close);

const NETWORKS = ["well", "slow", "broken"] as const;
const WIDTHS = [1440, 768, 360];
const PATIENCE = 60_000;

interface Step {
  name: string;
  /** What is done; the last of it asks something of the service. */
  press: (page: Page) => Promise<unknown>;
  /** What is there when the step is done. */
  there: (page: Page) => Locator;
  /** Whether it changes something, which the page does not do again by itself. */
  isChange?: true;
}

interface Person {
  of: Organisation;
  answers?: Answers;
  steps: readonly [Step, ...Step[]];
}

const place = (page: Page, name: string) =>
  page.getByRole("navigation", { name: "Places" }).getByRole("link", { name, exact: true }).click();

const below = (page: Page, of: string, name: string) =>
  page
    .getByRole("navigation", { name: `Pages of ${of}` })
    .getByRole("link", { name, exact: true })
    .click();

/** Service 0 cost three times the usual on its last two days, and one of its topics is not read; its team asks. */
function spiked(): Organisation {
  const of = acme();
  const rows = of.rows.map((each) =>
    each.identity_id === "sa-0" && each.date >= "2026-11-15" ? { ...each, amount: each.amount * 3n } : each,
  );
  const findings = [finding("sa-0", "idle_identity", { team: "payments" })];
  return { ...of, rows, findings, me: reader(["read", "export"], { "tag:team": ["payments"] }) };
}

const COSTS: Step = {
  name: "costs",
  press: (page) => page.goto(BASE),
  there: (page) => page.locator(".lead"),
};
const WAITS = { "2026-11-17": "644.00", "2026-11-18": "500.00" };
const waiting: Organisation = { ...acme(), pending: WAITS, errors: ["2026-11-18: the metrics were refused (401)"] };
/** After the run: the days that waited cost what two others did. */
function calculated(): Organisation {
  const of = acme();
  const rows = of.rows.filter((each) => each.date > "2026-11-14").map((each) => ({ ...each, date: add(each.date, 2) }));
  return { ...of, last: "2026-11-18", rows: [...of.rows, ...rows], lastRun: "2026-11-22T05:00:00Z" };
}
const progress = { stage: "calculating", date: null, done: 1, total: 2, is_cancelled: false };

const PERSONS: Record<string, Person> = {
  "team lead": {
    of: spiked(),
    steps: [
      COSTS,
      {
        name: "spike",
        press: (page) => page.getByRole("link", { name: "Stands out", exact: true }).last().click(),
        there: (page) => page.getByRole("region", { name: "Table of what stands out" }),
      },
      {
        name: "why",
        press: (page) => page.getByRole("link", { name: "Kafka CKUs of prod-dedicated-0" }).click(),
        there: (page) => page.getByRole("dialog", { name: "Why this amount?" }).getByText(/has its part of/),
      },
      {
        name: "savings",
        press: async (page) => {
          await page.keyboard.press("Escape");
          await page.getByRole("link", { name: "Clear all" }).click();
          await place(page, "Savings");
        },
        there: (page) => page.getByRole("region", { name: "Findings" }),
      },
    ],
  },
  analyst: {
    of: acme(),
    steps: [
      COSTS,
      {
        name: "what-changed",
        press: (page) => page.getByRole("button", { name: "why did it change?" }).click(),
        there: (page) => page.getByRole("dialog").getByRole("heading", { name: /the largest changes first/ }),
      },
      {
        name: "ownership",
        press: async (page) => {
          await page.keyboard.press("Escape");
          await place(page, "Ownership");
        },
        there: (page) => page.getByRole("region", { name: "Table of what is to be assigned" }),
      },
      {
        name: "several",
        press: async (page) => {
          for (const name of ["Service 3", "Service 7"]) await page.getByRole("checkbox", { name }).check();
        },
        there: (page) => page.getByText("2 things chosen:"),
      },
      {
        name: "preview",
        press: async (page) => {
          await page.getByRole("region", { name: "Assign" }).getByLabel("Value").selectOption("Payments");
          await page.getByRole("button", { name: "Show what changes" }).click();
        },
        there: (page) => page.getByRole("region", { name: "What moves" }),
      },
      {
        name: "saved",
        isChange: true,
        press: (page) =>
          page.getByRole("region", { name: "Assign" }).getByRole("button", { name: "Save", exact: true }).click(),
        there: (page) => page.getByText("Saved as version 4."),
      },
    ],
  },
  controller: {
    of: acme(),
    steps: [
      COSTS,
      {
        name: "bill",
        press: (page) => place(page, "Bill"),
        there: (page) => page.getByRole("heading", { name: "Bill of acme, October 2026" }),
      },
      {
        name: "statements",
        press: (page) => below(page, "Bill", "Statements"),
        there: (page) => page.getByRole("region", { name: "Statements", exact: true }),
      },
      {
        name: "statement",
        press: (page) =>
          page.getByRole("region", { name: "Statements", exact: true }).getByRole("link", { name: "payments" }).click(),
        there: (page) => page.getByRole("region", { name: "Lines" }),
      },
      {
        name: "rows",
        press: (page) => page.getByRole("link", { name: "Rows of Kafka CKUs" }).click(),
        there: (page) => page.getByRole("heading", { name: /^\d+ rows$/ }),
      },
      {
        name: "journal",
        press: async (page) => {
          await page.goBack();
          await page.getByRole("link", { name: "All statements of October 2026" }).click();
          await page.getByRole("link", { name: "Journal", exact: true }).click();
        },
        there: (page) => page.getByRole("region", { name: "Table of the journal" }),
      },
      {
        name: "month-end",
        press: (page) => below(page, "Bill", "Month end"),
        there: (page) => page.getByRole("button", { name: /^Close October 2026/ }),
      },
    ],
  },
  "platform engineer": {
    of: waiting,
    answers: {
      "/pipeline/run": (route) => {
        become({ ...waiting, isRunning: true, progress });
        return route.fulfill({ status: 202, json: { status: "started" } });
      },
    },
    steps: [
      COSTS,
      {
        name: "health",
        press: (page) => page.getByRole("banner").getByRole("link", { name: "2 days not calculated yet" }).click(),
        there: (page) => page.getByRole("heading", { name: "What to look at" }),
      },
      {
        name: "cause",
        press: (page) => page.locator(".problems").getByRole("link", { name: "17 Nov – 18 Nov 2026" }).first().click(),
        there: (page) => page.getByRole("heading", { name: "2 days not calculated yet", exact: true }),
      },
      {
        name: "question",
        press: (page) => page.getByRole("button", { name: "Recalculate all pending …" }).click(),
        there: (page) => page.getByRole("button", { name: "Recalculate 2 days" }),
      },
      {
        name: "run",
        isChange: true,
        press: (page) => page.getByRole("button", { name: "Recalculate 2 days" }).click(),
        there: (page) => page.getByRole("dialog").getByText("The run is on: calculating, 1 of 2 days."),
      },
      {
        name: "end",
        press: async () => become(calculated()),
        there: (page) => page.getByRole("dialog").getByText("Done."),
      },
    ],
  },
};

const CODE = /\/assets\/.*\.js$/;
const ANSWERS = /\/api\/v1\//;

/** The network between the page and the service, which can be cut while something is asked. */
class Network {
  readonly #page: Page;
  /** What is not answered any more, because the network is about to go. */
  #held: readonly RegExp[] = [];
  #waiting: Route[] = [];
  #isDown = false;
  #asked = 0;

  constructor(page: Page) {
    this.#page = page;
    page.on("request", () => this.#asked++);
    page.on("requestfinished", () => this.#asked--);
    page.on("requestfailed", () => this.#asked--);
  }

  get isQuiet() {
    return this.#asked === 0;
  }

  get isAsked() {
    return this.#waiting.length > 0;
  }

  async watch() {
    await this.#page.route(
      (url) => CODE.test(url.pathname) || ANSWERS.test(url.pathname),
      (route) => {
        if (this.#isDown) return route.abort("internetdisconnected");
        if (!this.#held.some((each) => each.test(route.request().url()))) return route.fallback();
        this.#waiting.push(route);
      },
    );
  }

  /** From now on, some questions get no answer. */
  hold(what: readonly RegExp[]) {
    this.#held = what;
  }

  async cut() {
    this.#isDown = true;
    await this.#page.context().setOffline(true);
    for (const route of this.#waiting.splice(0)) await route.abort("internetdisconnected");
  }

  async answer() {
    this.#held = [];
    for (const route of this.#waiting.splice(0)) await route.fallback();
  }

  async mend() {
    this.#isDown = false;
    await this.#page.context().setOffline(false);
  }
}

interface Drawn {
  seen: { words: string[]; zeros: number };
}

/** Notes in the page what is drawn while something is awaited: words that no answer has, and the most zeros at a time. */
function watch(): void {
  const seen: Drawn["seen"] = { words: [], zeros: 0 };
  Object.assign(globalThis, { seen });
  new MutationObserver(() => {
    if (!document.querySelector("[aria-busy=true]")) return;
    const read = [...document.querySelectorAll("[aria-valuetext]")].map((each) => each.getAttribute("aria-valuetext"));
    const text = `${document.getElementById("root")?.textContent} ${read.join(" ")}`;
    seen.words.push(...(text.match(/.{0,80}(?:undefined|NaN).{0,80}/g) ?? []));
    seen.zeros = Math.max(seen.zeros, text.split("$0.00").length - 1);
  }).observe(document, { childList: true, subtree: true, characterData: true, attributeFilter: ["aria-valuetext"] });
}

/** What a reader has before them, however it is laid out. */
const texts = async (page: Page) => (await page.locator("body").innerText()).replace(/\s+/g, " ");
const zerosIn = (page: Page) => page.evaluate(() => (document.body.textContent ?? "").split("$0.00").length - 1);

async function until(is: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = Date.now() + PATIENCE; Date.now() < end && !(await is()); )
    await new Promise((resolve) => setTimeout(resolve, 100));
}

/** Nothing is wider than its window, and there are pictures of it, if they are wanted. */
async function look(page: Page, name: string): Promise<void> {
  const before = page.viewportSize();
  for (const width of WIDTHS) {
    await page.setViewportSize({ width, height: 900 });
    assert.equal(await overflow(page), 0, `${name} at ${width} px`);
  }
  if (before) await page.setViewportSize(before);
  await pictures(page, `walk-${name}`.replaceAll(" ", "-"), WIDTHS);
}

/** A phone far away: nothing is answered yet, and then it comes slowly. */
async function wait(page: Page, network: Network, { press, there }: Step, name: string): Promise<void> {
  const browser = await page.context().newCDPSession(page);
  await farAway(browser);
  network.hold([ANSWERS]);
  await press(page);
  await until(async () => network.isAsked || (await there(page).isVisible()));
  // It is not the looking that is to be slow.
  await browser.send("Emulation.setCPUThrottlingRate", { rate: 1 });
  await look(page, name);
  await farAway(browser);
  await network.answer();
}

/** The network goes while the step is on its way, and again while it is asked for what was not answered: the page says
 * so, and that what it shows is older. */
async function breakDown(page: Page, network: Network, { press, there, isChange }: Step, name: string): Promise<void> {
  // What is behind a dialog is not before the reader.
  const before = page.locator("dialog[open], main:not(:has(dialog[open]))");
  network.hold([CODE, ANSWERS]);
  await press(page);
  for (const held of isChange ? [[]] : [[ANSWERS], []]) {
    await until(async () => network.isAsked || (await there(page).isVisible()));
    const isAsked = network.isAsked;
    await network.cut();
    if (isAsked)
      await before
        .getByText(/You are offline|cannot be reached|or the service is down/)
        .first()
        .waitFor();
    // Without a network, a change is refused at once: nothing happens later that nobody awaits.
    if (isChange) {
      await press(page);
      await before.getByText("Try again when it is back").first().waitFor();
    }
    for (const stale of await before.locator(".stale > *").all()) {
      await before.getByText("the figures below are those of before").first().waitFor();
      assert.equal(await stale.evaluate((each) => getComputedStyle(each).opacity), "0.72", name);
    }
    if (!held.length) await look(page, name);
    network.hold(held);
    await network.mend();
  }
  if (isChange) await press(page);
}

for (const [person, { of, answers, steps }] of Object.entries(PERSONS))
  test(`the walk of the ${person}`, async (walk) => {
    /** What each step ends with where nothing is in the way. */
    const ends = new Map<Step, string>();
    for (const kind of NETWORKS)
      await walk.test(kind, async () => {
        const found = await over(of, answers, {});
        const { page } = found;
        page.setDefaultTimeout(PATIENCE);
        await page.addInitScript(watch);
        const network = new Network(page);
        await network.watch();
        let zeros = 0;
        for (const step of steps) {
          const name = `${person}-${step.name}-${kind}`;
          // The page itself has to be there before it can say that there is no network.
          if (kind === "broken" && step !== steps[0]) await breakDown(page, network, step, name);
          else if (kind === "slow") await wait(page, network, step, name);
          else await step.press(page);
          await step.there(page).waitFor();
          await settled(page);
          await page.mouse.move(0, 0);
          const wanted = ends.get(step);
          await until(async () => network.isQuiet && (wanted === undefined || (await texts(page)) === wanted));
          const end = await texts(page);
          if (wanted === undefined) ends.set(step, end);
          else assert.equal(end, wanted, name);
          if (process.env.SHOW) console.log(name, "\n   ", end);
          const before = zeros;
          zeros = await zerosIn(page);
          const seen = await page.evaluate(() => (globalThis as never as Drawn).seen);
          assert.deepEqual(seen.words, [], name);
          assert.ok(seen.zeros <= Math.max(before, zeros), `${name}: ${seen.zeros} times $0.00 while it was awaited`);
          await page.evaluate(() => Object.assign((globalThis as never as Drawn).seen, { zeros: 0 }));
          if (kind === "well") await look(page, name);
        }
        await leave(found);
      });
  });
