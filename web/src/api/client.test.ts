import { afterEach, expect, test, vi } from "vitest";
import { read } from "./client";
import { askEarly, takeEarly } from "./early";
import { Problem } from "./problems";

afterEach(() => vi.unstubAllGlobals());

/** A service that answers with numbers from 1, and how often it was asked. */
function counting() {
  const ask = vi.fn(async () => Response.json(ask.mock.calls.length));
  vi.stubGlobal("fetch", ask);
  return ask;
}

test("what was asked early is one request, whoever reads it first has it, and the next asks again", async () => {
  const ask = counting();
  askEarly("/costs");
  expect(takeEarly("/costs")).toBeUndefined();
  expect(await read("/costs")).toBe(1);
  expect(ask).toHaveBeenCalledTimes(1);
  expect(await read("/costs")).toBe(2);
  expect(takeEarly("/costs")).toBeUndefined();
});

test("what is there before anybody reads it can be taken at once, and once", async () => {
  const ask = counting();
  askEarly("/costs");
  await vi.waitFor(() => expect(takeEarly("/costs")).toBe(1));
  expect(takeEarly("/costs")).toBeUndefined();
  expect(await read("/costs")).toBe(2);
  expect(ask).toHaveBeenCalledTimes(2);
});

test("whoever reads what failed is told why, and can ask again", async () => {
  vi.stubGlobal("fetch", async () => Response.json({ title: "Busy", detail: "Later." }, { status: 503 }));
  askEarly("/costs");
  await expect(read("/costs")).rejects.toThrow(new Problem(503, "Busy", "Later."));
  counting();
  expect(await read("/costs")).toBe(1);
});
