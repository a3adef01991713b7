import type { Path } from "../../api/address";
import { present, useAnswer } from "../../api/answer";
import { useAccess } from "../../api/me";
import { question, usePipeline } from "../../api/questions";
import type { InventorySummary, PipelineStatus } from "../../api/shapes";
import { useHere } from "../../app/router";
import { useRun } from "../../app/run";
import { instant } from "../../format/days";
import { Card } from "../../ui/card";
import { Icon, type IconName } from "../../ui/icons";
import { Answered, Bone, Empty } from "../../ui/states";
import { say } from "../../words/say";
import { type Counts, type Step, type StepState, stepsOf } from "./steps";

const TITLE = say("No day is calculated yet");
/** After how many seconds it is asked again: while a run is on, and while the next one is awaited. */
const [SOON, LATER] = [4, 20];

/** In place of figures of a tenant of which no day is calculated, which would say that nothing costs anything: what has to
 * happen before the first costs, and how far it is. It goes by itself, as the page that shows it asks for the tenant. */
export function FirstRun() {
  const tenant = useHere().tenant ?? "";
  const { isKnown, seesAll } = useAccess(tenant);
  if (!isKnown) return <Bone height={24} />;
  return seesAll ? <Checklist tenant={tenant} /> : <NothingYet tenant={tenant} />;
}

/** For readers of a part of the bill, to whom the service does not say how its runs went. */
function NothingYet({ tenant }: { tenant: string }) {
  const status = present(usePipeline(tenant));
  return (
    <Empty title={TITLE}>
      <p>
        {say("The first figures are there when a day’s bill and its usage have been read, and the day is calculated.")}
      </p>
      {status && <p>{whenLast(status)}</p>}
    </Empty>
  );
}

function Checklist({ tenant }: { tenant: string }) {
  const here = useHere();
  const again = useRun(tenant).isOn ? SOON : LATER;
  useOften(tenant, "", again);
  const counts = present(useOften(tenant, "/inventory/summary", again));
  const status = useOften(tenant, "/pipeline/status", again);
  const health = useOften(tenant, "/health", again);
  return (
    <Card
      title={TITLE}
      note={say("the page follows by itself, and shows the costs when they are there")}
      action={
        here.page !== "days" && (
          <a className="more" href={here.to({ ...here.view, filters: [], extra: {} }, "days")}>
            {say("Days and runs")}
          </a>
        )
      }
    >
      <Answered answer={health} skeleton={<Bone height={20} />}>
        {(health) => (
          <Answered answer={status} skeleton={<Bone height={20} />}>
            {(status) => (
              <Steps
                steps={stepsOf({ health, status, counts: counts ? countsOf(counts) : null })}
                last={whenLast(status)}
              />
            )}
          </Answered>
        )}
      </Answered>
    </Card>
  );
}

function useOften<P extends Path>(tenant: string, path: P, again: number) {
  return useAnswer({ ...question(tenant, path), again });
}

function countsOf({ resource_counts, identity_counts: { system: _, ...identities } }: InventorySummary): Counts {
  const total = (counts: InventorySummary["resource_counts"]) =>
    Object.values(counts).reduce((all, each) => all + each.total, 0);
  return { resources: total(resource_counts), identities: total(identities) };
}

function whenLast({ last_run, is_running }: PipelineStatus): string {
  if (last_run) return say("The last run ended {time}.", { time: instant(last_run) });
  return is_running ? say("The first run is on.") : say("No run has ended yet.");
}

const STATES: Record<StepState, [words: string, icon: IconName, tone: string]> = {
  done: [say("done"), "check", "good"],
  running: [say("running"), "next", ""],
  waiting: [say("waiting [a step]"), "minus", "quiet"],
  failed: [say("failed"), "warning", "bad"],
};

function Steps({ steps, last }: { steps: readonly Step[]; last: string }) {
  const done = steps.filter((each) => each.state === "done").length;
  return (
    <>
      <ol className="problems" aria-label={say("Steps to the first costs")}>
        {steps.map(({ name, state, says, remedy }) => {
          const [words, icon, tone] = STATES[state];
          return (
            <li key={name}>
              <Icon name={icon} className={tone} />
              <div>
                <h3>
                  {name} <span className={`small ${state === "failed" ? "bad" : "quiet"}`}>{words}</span>
                </h3>
                {says && <p className={state === "failed" ? "bad" : undefined}>{says}</p>}
                {remedy && <p className="note">{remedy}</p>}
              </div>
            </li>
          );
        })}
      </ol>
      <p className="note">
        <span role="status">{say("{done} of {all} steps are done.", { done, all: steps.length })}</span> {last}
      </p>
    </>
  );
}
