import { onlineManager, QueryClientProvider } from "@tanstack/react-query";
import { createElement, render } from "preact/compat";
import { act } from "preact/test-utils";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Answered } from "../ui/states";
import { type Answer, createQueries, missing, present, useAnswer } from "./answer";
import { Problem } from "./problems";

/** A service that answers when it is told to. */
const waiting = new Map<string, { answer: (text: string) => void; fail: (problem: Problem) => void }>();
let [seen, box]: [Answer<string, string> | null, HTMLElement] = [null, document.body];

function Probe({ asked }: { asked: string }) {
  const answer = useAnswer({
    key: [asked],
    of: asked,
    ask: () => new Promise<string>((answer, fail) => waiting.set(asked, { answer, fail })),
  });
  seen = answer;
  return Answered<string, string>({
    answer,
    skeleton: createElement("i", null),
    children: (data, of) => `${of}: ${data}`,
  });
}

const client = createQueries();
const ask = (asked: string) =>
  act(async () => {
    render(createElement(QueryClientProvider, { client }, createElement(Probe, { asked })), box);
  });
const pause = () => new Promise<void>((done) => setTimeout(done, 10));
/** What the service does, and what comes of it, however long that takes. */
const told = async (what: () => void) => {
  const before = seen;
  await act(async () => what());
  while (seen === before) await act(pause);
};
const answer = (asked: string, text: string) => told(() => waiting.get(asked)?.answer(text));
const fail = (asked: string, problem: Problem) => told(() => waiting.get(asked)?.fail(problem));
const drawn = () => box.querySelector(".main-part")?.textContent;

beforeEach(() => {
  box = document.createElement("div");
});

afterEach(async () => {
  await act(() => void render(null, box));
  onlineManager.setOnline(true);
  client.clear();
  waiting.clear();
});

describe("an answer", () => {
  test("is not known while it is awaited, and then of what was asked", async () => {
    await ask("costs by team");
    expect(seen && missing(seen)).toMatchObject({ why: "loading", problem: null });
    expect(box.querySelector("[aria-busy=true] i")).not.toBeNull();
    await answer("costs by team", "$7");
    expect(drawn()).toBe("costs by team: $7");
    expect(box.querySelector(".stale")).toBeNull();
  });

  test("to another question stays, dimmed and as what it answers, and is never taken for the present one", async () => {
    await ask("costs by team");
    await answer("costs by team", "$7");
    await ask("costs by product");
    expect(drawn()).toBe("costs by team: $7");
    expect(box.querySelector(".stale[aria-busy=true]")).not.toBeNull();
    expect(seen && present(seen)).toBeUndefined();
    await answer("costs by product", "$8");
    expect(drawn()).toBe("costs by product: $8");
    expect(seen && present(seen)).toBe("$8");
  });

  test("that waits for a network says so, with what is known before and without", async () => {
    await ask("costs by team");
    await answer("costs by team", "$7");
    onlineManager.setOnline(false);
    await ask("costs by product");
    expect(seen && missing(seen)?.why).toBe("paused");
    expect(box.querySelector("[role=alert]")?.textContent).toContain("You are offline");
    expect(drawn()).toBe("costs by team: $7");
    await ask("costs by team");
    client.clear();
  });

  test("that fails says why; one that is refused is asked once", async () => {
    await ask("costs by team");
    await fail("costs by team", new Problem(403, "You may not see this", "It is not yours."));
    expect(seen && missing(seen)?.why).toBe("not allowed");
    expect(box.textContent).toContain("It is not yours.");
    await ask("costs by product");
    await fail("costs by product", new Problem(503, "The storage cannot be used", "It is locked."));
    expect(seen && missing(seen)?.why).toBe("failed");
    expect(box.textContent).toContain("The storage cannot be used");
  });
});
