import type { Health, PipelineStatus, SourceHealth } from "../../api/shapes";
import { reworded } from "../../words/reworded";
import { say } from "../../words/say";

export type StepState = "done" | "running" | "waiting" | "failed";

/** What has to happen before there are costs, and how far it is. */
export interface Step {
  name: string;
  state: StepState;
  /** What is known of it, and what to do; null where nothing is. */
  says: string | null;
  remedy: string | null;
}

/** How many things the inventory has; the service's own identities are not among them. */
export interface Counts {
  resources: number;
  identities: number;
}

interface Facts {
  status: PipelineStatus;
  health: Health;
  /** Null until it is answered. */
  counts: Counts | null;
}

/** The steps to the first costs, in their order. What the last run said of a step counts until the next one is on. */
export function stepsOf(facts: Facts): Step[] {
  const access = accessOf(facts);
  // What is refused or does not answer at all says nothing of what is read from it.
  const isClosed = access.state === "failed";
  const read = isClosed
    ? [FOUND, BILL, USAGE].map((name) => step(name, "waiting"))
    : [inventoryOf(facts), billOf(facts), usageOf(facts)];
  return [configurationOf(facts.health), access, ...read, costsOf(facts, [access, ...read])];
}

const [CONFIGURATION, ACCESS] = [say("Configuration"), say("Access to the source")];
const [FOUND, BILL] = [say("Resources and identities"), say("Bill")];
const [USAGE, COSTS] = [say("Usage"), say("First costs")];

const step = (name: string, state: StepState, says: string | null = null, remedy: string | null = null): Step => ({
  ...{ name, state, says, remedy: remedy && reworded(remedy) },
});

/** A step that a source has failed: what is there all the same, and the source's own answer. */
function failed(name: string, { error, is_refused, remedy }: SourceHealth, before?: string | null): Step {
  const why = reworded(error ?? "");
  const answer = is_refused ? say("refused: {why}", { why }) : say("no answer: {why}", { why });
  return step(name, "failed", before ? `${before}; ${answer}` : answer, remedy);
}

function configurationOf({ problems, lookback_days }: Health): Step {
  const wrong = problems.find((each) => each.kind === "topics_misconfigured");
  if (wrong) return step(CONFIGURATION, "failed", wrong.causes.map(reworded).join("; "), wrong.remedy);
  return step(CONFIGURATION, "done", say("read; days of up to {n} {n|day|days} ago are fetched", { n: lookback_days }));
}

function accessOf({ status, health, counts }: Facts): Step {
  const [bill, inventory] = [source(health, "bill"), source(health, "inventory")];
  if (isListed(health, counts) || (bill?.days ?? 0) > 0 || daysRead(status) > 0)
    return step(ACCESS, "done", say("accepted [access]"));
  if (status.is_running) return step(ACCESS, isIn(status, "gathering") ? "running" : "waiting");
  const broken = [bill, inventory].find((each) => each?.is_refused) ?? [bill, inventory].find((each) => each?.error);
  return broken ? failed(ACCESS, broken) : step(ACCESS, "waiting");
}

function inventoryOf({ status, health, counts }: Facts): Step {
  const inventory = source(health, "inventory");
  const found =
    counts &&
    say("{resources} {resources|resource|resources} and {identities} {identities|identity|identities} are found", {
      ...counts,
    });
  if (!status.is_running && inventory?.error) return failed(FOUND, inventory, found);
  if (isListed(health, counts)) return step(FOUND, "done", found);
  // A run reads the inventory first, and then the bill day by day.
  return step(FOUND, isIn(status, "gathering") ? "running" : "waiting");
}

function billOf({ status, health, counts }: Facts): Step {
  const bill = source(health, "bill");
  const days = bill?.days ?? 0;
  if (isIn(status, "gathering")) {
    const isRead = isListed(health, counts) || daysRead(status) > 0;
    return isRead ? step(BILL, "running", ofTotal(status)) : step(BILL, "waiting");
  }
  if (!status.is_running && bill?.error)
    return failed(BILL, bill, days ? say("{n} {n|day is|days are} read", { n: days }) : null);
  if (days === 0) return step(BILL, "waiting");
  // Whether the bill is all there is said by the inventory: a run that has read both gives it to every day.
  const inventory = source(health, "inventory");
  if (inventory?.days || inventory?.error || isIn(status, "calculating"))
    return step(BILL, "done", say("{n} {n|day is|days are} read", { n: days }));
  return step(
    BILL,
    "waiting",
    say("{days} of the last {n} {n|day|days}; the next run goes on", { days, n: health.lookback_days }),
  );
}

function usageOf({ status, health }: Facts): Step {
  const usage = source(health, "metrics");
  const days = usage?.days ?? 0;
  if (isIn(status, "calculating")) return step(USAGE, "running");
  if (!status.is_running && usage?.error)
    return failed(USAGE, usage, days ? say("{n} {n|day is|days are} measured", { n: days }) : null);
  return days ? step(USAGE, "done", say("{n} {n|day|days} measured", { n: days })) : step(USAGE, "waiting");
}

function costsOf({ status, health }: Facts, before: readonly Step[]): Step {
  if (health.days_calculated > 0)
    return step(COSTS, "done", say("{n} {n|day|days} calculated", { n: health.days_calculated }));
  if (isIn(status, "calculating")) return step(COSTS, "running", ofTotal(status));
  if (status.is_running || before.some((each) => each.state === "failed")) return step(COSTS, "waiting");
  const wrong = health.problems.find((each) => each.kind === "run_failed" || each.kind === "suspended");
  return wrong ? step(COSTS, "failed", wrong.causes.map(reworded).join("; "), wrong.remedy) : step(COSTS, "waiting");
}

function source(health: Health, name: SourceHealth["source"]): SourceHealth | undefined {
  return health.sources.find((each) => each.source === name);
}

function isListed(health: Health, counts: Counts | null): boolean {
  return (source(health, "inventory")?.days ?? 0) > 0 || (counts?.resources ?? 0) > 0;
}

function isIn({ is_running, progress }: PipelineStatus, stage: "gathering" | "calculating"): boolean {
  return is_running && progress?.stage === stage;
}

/** How many days of the bill the run that is on has read. */
function daysRead(status: PipelineStatus): number {
  return isIn(status, "gathering") ? (status.progress?.done ?? 0) : 0;
}

/** `12 of 35 days`, as far as the run says it. */
function ofTotal({ progress }: PipelineStatus): string | null {
  if (!progress || progress.total === 0) return null;
  return say("{done} of {n} {n|day|days}", { done: progress.done, n: progress.total });
}
