import { describe, expect, it } from "vitest";
import type { Health, HealthProblem, PipelineStatus, SourceHealth } from "../../api/shapes";
import { stepsOf } from "./steps";

const REMEDY = "Correct its key.";

/** A service of which nothing is there yet; `sources` are what some of its sources have said. */
function seen(
  sources: Partial<Record<SourceHealth["source"], [days: number, error?: string]>>,
  run: { stage: string; done?: number } | null = null,
  more: Partial<Health> = {},
) {
  const told = (["bill", "inventory", "metrics"] as const).map((source): SourceHealth => {
    const [days, error = null] = sources[source] ?? [0];
    const is_refused = error?.startsWith("HTTP 4") === true;
    return { source, days, last_at: null, error, is_refused, remedy: error && REMEDY };
  });
  const health: Health = { state: "bad", problems: [], sources: told, days_calculated: 0, lookback_days: 35, ...more };
  const progress = run && { stage: run.stage, date: null, done: run.done ?? 0, total: 35, is_cancelled: false };
  const status: PipelineStatus = {
    ...{ tenant_name: "acme", is_running: run !== null, progress, permanent_failure: null },
    ...{ last_run: null, last_result: null },
  };
  return { health, status, counts: null };
}

const counts = { resources: 14, identities: 1 };
/** The steps after the configuration, in one line each. */
const lines = (facts: Parameters<typeof stepsOf>[0]) =>
  stepsOf(facts)
    .slice(1)
    .map(({ state, says }) => (says ? `${state}: ${says}` : state));

describe("the steps to the first costs", () => {
  it("say nothing that is not known: before the first run, everything but the configuration waits", () => {
    expect(stepsOf(seen({}))[0]).toMatchObject({ state: "done", says: "read; days of up to 35 days ago are fetched" });
    expect(lines(seen({}))).toEqual(["waiting", "waiting", "waiting", "waiting", "waiting"]);
  });

  it("name a refused key once, with the source’s own answer and what to do", () => {
    const facts = seen({ bill: [0, "HTTP 401: unknown key"], inventory: [0, "no clusters: HTTP 401"] });
    expect(lines(facts)).toEqual([
      "failed: refused: HTTP 401: unknown key",
      ...["waiting", "waiting", "waiting", "waiting"],
    ]);
    expect(stepsOf(facts)[1]?.remedy).toBe(REMEDY);
    expect(lines(seen({ bill: [0, "no connection"] }))[0]).toBe("failed: no answer: no connection");
  });

  it("forget what the last run said as soon as the next one is on", () => {
    const facts = seen({ bill: [0, "HTTP 401: unknown key"] }, { stage: "gathering" });
    expect(lines(facts)).toEqual(["running", "running", "waiting", "waiting", "waiting"]);
  });

  it("count the days of the bill while they are read, and what was found before", () => {
    const facts = { ...seen({ bill: [10] }, { stage: "gathering", done: 12 }), counts };
    expect(lines(facts)).toEqual([
      "done: accepted",
      "done: 14 resources and 1 identity are found",
      ...["running: 12 of 35 days", "waiting", "waiting"],
    ]);
  });

  it("are accepted by the source, and refused the bill: the key lacks a right", () => {
    const facts = { ...seen({ bill: [0, "HTTP 403: no billing role"] }), counts };
    expect(lines(facts).slice(0, 3)).toEqual([
      "done: accepted",
      "done: 14 resources and 1 identity are found",
      "failed: refused: HTTP 403: no billing role",
    ]);
  });

  it("go on with the next run where one was ended", () => {
    expect(lines(seen({ bill: [12] }))[2]).toBe("waiting: 12 of the last 35 days; the next run goes on");
  });

  it("name refused metrics, of a bill that is there", () => {
    const facts = seen({ bill: [35], inventory: [35], metrics: [0, "HTTP 401: bad password"] });
    expect(lines(facts)).toEqual([
      ...["done: accepted", "done", "done: 35 days are read"],
      "failed: refused: HTTP 401: bad password",
      "waiting",
    ]);
  });

  it("end with the costs, or with why the last run has none", () => {
    const [bill, inventory] = [[35], [35]] as [[number], [number]];
    expect(lines(seen({ bill, inventory }, { stage: "calculating", done: 3 })).slice(2)).toEqual([
      ...["done: 35 days are read", "running", "running: 3 of 35 days"],
    ]);
    const problem: HealthProblem = {
      ...{ kind: "run_failed", severity: "bad", causes: ["the disk is full"], remedy: "Run again.", ended_by: "run" },
      ...{ start_date: null, end_date: null, days: 0 },
    };
    expect(stepsOf(seen({ bill, inventory }, null, { problems: [problem] })).at(-1)).toMatchObject({
      ...{ state: "failed", says: "the disk is full", remedy: "Run again." },
    });
  });

  it("say that topics are configured wrongly", () => {
    const problem: HealthProblem = {
      ...{ kind: "topics_misconfigured", severity: "warning", causes: ["no such metric"], remedy: "Correct it." },
      ...{ ended_by: "restart", start_date: null, end_date: null, days: 0 },
    };
    expect(stepsOf(seen({}, null, { problems: [problem] }))[0]).toMatchObject({
      ...{ state: "failed", says: "no such metric", remedy: "Correct it." },
    });
  });
});
