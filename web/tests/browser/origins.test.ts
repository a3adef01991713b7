/** Pages of other sites, in the same browser as a reader: they change nothing and read nothing. */
import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import type { Page as Window } from "playwright-core";
import { chromium } from "playwright-core";
import type { Page, RunList, SavedView, Tag } from "../../src/api/shapes";
import { ask } from "./service.ts";
import { BASE, close, FLAGS } from "./world.ts";

const API = new URL("../api/v1/", BASE);
const TENANT = "tenants/acme";
const TAG = { tag_key: "taken", tag_value: "over" };

let attacker: Server;

before(async () => {
  attacker = createServer((_, answer) => {
    answer.setHeader("Content-Type", "text/html");
    answer.end("<!doctype html><title>A page of another site</title><h1>Win a prize</h1>");
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => attacker.once("listening", resolve));
});

after(async () => {
  attacker.close();
  await close();
});

/** A browser of a reader, in which names of the attacker lead to this machine. */
async function browsing(work: (page: Window, port: number) => Promise<void>): Promise<void> {
  const rules = "MAP attacker.example 127.0.0.1, MAP *.attacker.example 127.0.0.1";
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: [...FLAGS, `--host-resolver-rules=${rules}`],
  });
  try {
    const page = await browser.newPage();
    await work(page, (attacker.address() as AddressInfo).port);
  } finally {
    await browser.close();
  }
}

/** What a page could change. */
async function state(): Promise<unknown> {
  const [runs, tags, views, status] = await Promise.all([
    ask<RunList>(`${TENANT}/runs?limit=1`),
    ask<Page<Tag>>(`${TENANT}/tags?tag_key=${TAG.tag_key}`),
    ask<{ items: SavedView[] }>(`${TENANT}/views`),
    ask<{ is_running: boolean }>(`${TENANT}/pipeline/status`),
  ]);
  return [runs.items[0]?.run_id, tags.total, views.items.map((each) => each.id), status.is_running];
}

/** An identity that a tag could be set for. */
async function anIdentity(): Promise<string> {
  const { items } = await ask<Page<{ identity_id: string }>>(`${TENANT}/identities?page_size=1`);
  assert.ok(items[0]);
  return items[0].identity_id;
}

/** The statuses of what the browser sent to the service, by method; a preflight that is refused lets nothing follow. */
function heard(page: Window): string[] {
  const found: string[] = [];
  page.on("response", (response) => {
    const url = new URL(response.url());
    if (url.pathname.startsWith(API.pathname)) found.push(`${response.request().method()} ${response.status()}`);
  });
  return found;
}

/** Where the attacker's page is: another site; and another port of this machine, which browsers count as the same site. */
const SITES: Record<string, (port: number) => string> = {
  "another site": (port) => `http://attacker.example:${port}/`,
  "another port of the same host": (port) => `http://127.0.0.1:${port}/`,
};

for (const [name, site] of Object.entries(SITES)) {
  test(`scripts of ${name} start no run and set no tag`, async () => {
    const before = await state();
    const identity = encodeURIComponent(await anIdentity());
    await browsing(async (page, port) => {
      await page.goto(site(port));
      const sent = heard(page);
      const results = await page.evaluate(
        async ({ api, identity, tag }) => {
          const types = ["application/json", "text/plain", "application/x-www-form-urlencoded"];
          const wishes: [string, string, unknown][] = [
            ["POST", "tenants/acme/pipeline/run", {}],
            ["POST", `tenants/acme/entities/identity/${identity}/tags`, tag],
            ["PUT", `tenants/acme/entities/identity/${identity}/tags/${tag.tag_key}`, { tag_value: tag.tag_value }],
            ["POST", "tenants/acme/views", { name: "theirs", page: "costs", query: "" }],
          ];
          const found: string[] = [];
          for (const [method, path, body] of wishes)
            for (const type of types)
              for (const mode of ["cors", "no-cors"] as const)
                try {
                  const request = { method, mode, headers: { "Content-Type": type }, body: JSON.stringify(body) };
                  const answer = await fetch(api + path, { ...request, credentials: "include" });
                  found.push(`${answer.type} ${answer.status}`);
                } catch {
                  found.push("failed");
                }
          for (const type of types) navigator.sendBeacon(`${api}tenants/acme/pipeline/run`, new Blob(["{}"], { type }));
          return found;
        },
        { api: API.href, identity, tag: TAG },
      );
      await page.waitForTimeout(500);
      // The page may read no answer: `opaque 0` hides a refusal.
      assert.deepEqual([...new Set(results)].sort(), ["failed", "opaque 0"]);
      const posts = sent.filter((each) => /^(POST|PUT)/.test(each));
      assert.ok(posts.length > 0, "the browser sent nothing: this would test nothing");
      assert.deepEqual([...new Set(posts)], ["POST 403"]);
    });
    assert.deepEqual(await state(), before);
  });

  test(`forms of ${name} start no run and set no tag`, async () => {
    const before = await state();
    const identity = encodeURIComponent(await anIdentity());
    await browsing(async (page, port) => {
      await page.goto(site(port));
      for (const path of [`${TENANT}/pipeline/run`, `${TENANT}/entities/identity/${identity}/tags`])
        for (const enctype of ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"]) {
          const [answer] = await Promise.all([
            page.waitForResponse((response) => response.url() === API.href + path),
            page.evaluate(
              ({ action, enctype, tag }) => {
                // The reader sees nothing of it: the answer goes into a frame.
                const frame = document.createElement("iframe");
                frame.name = `frame-${document.forms.length}`;
                const form = document.createElement("form");
                Object.assign(form, { action, enctype, method: "POST", target: frame.name });
                const field = document.createElement("input");
                // As text, name and value read as JSON with a key that nobody asked for.
                Object.assign(field, { name: `${JSON.stringify(tag).slice(0, -1)},"x":"`, value: '"}' });
                form.append(field);
                document.body.append(frame, form);
                form.submit();
              },
              { action: API.href + path, enctype, tag: TAG },
            ),
          ]);
          assert.equal(answer.status(), 403);
        }
    });
    assert.deepEqual(await state(), before);
  });

  test(`scripts of ${name} read nothing`, async () => {
    await browsing(async (page, port) => {
      await page.goto(site(port));
      const found = await page.evaluate(async (api) => {
        const results: string[] = [];
        for (const mode of ["cors", "no-cors"] as const)
          try {
            const answer = await fetch(`${api}tenants/acme/costs`, { mode, credentials: "include" });
            results.push(await answer.text());
          } catch {
            results.push("");
          }
        return results;
      }, API.href);
      assert.deepEqual(found, ["", ""]);
    });
  });
}

test("a name of the attacker's that leads here (DNS rebinding) is answered with nothing", async () => {
  const before = await state();
  await browsing(async (page) => {
    // To the browser, the attacker's page and the service are one origin.
    const origin = `http://rebound.attacker.example:${API.port}`;
    const answer = await page.goto(origin);
    assert.equal(answer?.status(), 421);
    const found = await page.evaluate(async () => {
      const read = await fetch("/api/v1/tenants/acme/costs");
      const run = await fetch("/api/v1/tenants/acme/pipeline/run", {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: "{}",
      });
      return [read.status, run.status, await read.text()];
    });
    assert.deepEqual(found.slice(0, 2), [421, 421]);
    assert.ok(!String(found[2]).includes("amount"));
  });
  assert.deepEqual(await state(), before);
});

test("what was refused is in the audit log, with the origin that sent it", async () => {
  const { items } = await ask<{ items: { after: unknown }[] }>(`${TENANT}/audit?what=request.refused&page_size=100`);
  const told = JSON.stringify(items.map((each) => each.after));
  assert.match(told, /http:\/\/attacker\.example:/);
  assert.match(told, /rebound\.attacker\.example/);
});
