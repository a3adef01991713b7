import { afterEach, expect, test, vi } from "vitest";
import { read } from "./client";
import { asProblem, isEverywhere, Problem, problemOf, Unreachable } from "./problems";

afterEach(() => void vi.unstubAllGlobals());

test("a proxy's page in place of an answer means that the session has ended, and not that the page is wrong", async () => {
  const page = new Response("<html>Sign in</html>", { headers: { "Content-Type": "text/html" } });
  vi.stubGlobal("fetch", async () => page);
  const found = await read("/api/v1/tenants").catch(asProblem);
  expect(found).toMatchObject({ title: "Your session has ended", hasEnded: true, isRefusal: true, passes: false });
});

test("a proxy that gets no answer says, as no answer does, that the service cannot be reached", async () => {
  const through = (status: number) => {
    vi.stubGlobal(
      "fetch",
      async () => new Response("<h1>!</h1>", { status, headers: { "Content-Type": "text/html" } }),
    );
    return read("/api/v1/tenants").catch((error: unknown) => error);
  };
  const found = await through(502);
  expect(found).toBeInstanceOf(Unreachable);
  expect(found).toMatchObject({ status: 502, passes: true });
  const late = await through(504);
  expect(late).toMatchObject({ status: 504, title: "This takes too long", passes: true });
  expect([found, late, asProblem(new Error("x"))].map(isEverywhere)).toEqual([true, false, false]);
});

test("a problem says what the service says", async () => {
  const body = JSON.stringify({ title: "The storage cannot be used", detail: "database is locked" });
  const found = await problemOf(new Response(body, { status: 503 }));
  expect(found).toMatchObject({
    status: 503,
    title: "The storage cannot be used",
    detail: "database is locked",
    passes: true,
  });
});

test("a change that reaches into closed months says what would move, and when it may begin", async () => {
  const moved = [
    { period_id: "2026-10", by: "category:cost_center", value: "a", before: "1.00", after: "0.00", delta: "-1.00" },
  ];
  const body = JSON.stringify({
    title: "Closed months would change",
    moved,
    moved_count: 1,
    currency: "USD",
    begins: "2026-11-01",
  });
  const found = await problemOf(new Response(body, { status: 409 }));
  expect(found.reaching).toMatchObject({ moved, currency: "USD", begins: "2026-11-01" });
  expect((await problemOf(new Response("{}", { status: 409 }))).reaching).toBeNull();
});

test("a closing of what was not looked at says what has moved since", async () => {
  const moved = [
    { period_id: "2026-10", by: "category:cost_center", value: "a", before: "1.00", after: "2.00", delta: "1.00" },
  ];
  const found = await problemOf(
    new Response(JSON.stringify({ moved, moved_count: 1, currency: "USD" }), { status: 409 }),
  );
  expect([found.stale, found.reaching]).toEqual([{ moved, moved_count: 1, currency: "USD" }, null]);
  const other = JSON.stringify({ moved: [], moved_count: 0, currency: "USD" });
  expect((await problemOf(new Response(other, { status: 409 }))).stale).toBeNull();
});

test("a proxy's page of HTML becomes a sentence", async () => {
  const found = await problemOf(new Response("<html>no</html>", { status: 403 }));
  expect(found.title).toBe("You may not see this");
  expect(found.detail).toContain("proxy");
});

test("what is wrong stays wrong, what is down may come back", () => {
  expect([400, 401, 403, 404].map((status) => new Problem(status, "", "").passes)).toEqual([
    false,
    false,
    false,
    false,
  ]);
  expect([429, 500, 503, 504].map((status) => new Problem(status, "", "").passes)).toEqual([true, true, true, true]);
  expect(new Unreachable().passes).toBe(true);
  expect(asProblem(new Error("x")).title).toBe("This page made a mistake");
});

test("who has no identity is not signed in, whatever the service calls it", async () => {
  const body = JSON.stringify({ title: "No identity", detail: "The token has expired; get a new one." });
  const found = await problemOf(new Response(body, { status: 401 }));
  expect(found).toMatchObject({ title: "You are not signed in", detail: "The token has expired; get a new one." });
});

test("a part of the page that is not there is no mistake of the page", () => {
  const missing = new TypeError("Failed to fetch dynamically imported module: http://127.0.0.1/ui/assets/bill-1.js");
  expect(asProblem(missing).title).toBe("A part of the page could not be loaded");
  expect(asProblem(new TypeError("x is undefined")).title).toBe("This page made a mistake");
});
