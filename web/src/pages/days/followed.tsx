import { useState } from "preact/compat";
import { missing, present } from "../../api/answer";
import { usePipeline } from "../../api/questions";
import type { RunBody } from "../../api/shapes";
import { useRun, useStartRun } from "../../app/run";
import { Missing } from "../../ui/states";
import { say } from "../../words/say";

/** Start a run, to show its progress: `before` is when the run before it ended. */
export function useFollowedRun(tenant: string) {
  const start = useStartRun(tenant);
  const last = present(usePipeline(tenant))?.last_run ?? null;
  const [before, setBefore] = useState(last);
  const run = (body: Partial<RunBody>) => {
    setBefore(last);
    start.mutate(body);
  };
  return { start, run, before };
}

/** The run that was started: what it does, then what it did. `before` is when the run before it ended. */
export function Progress({ tenant, before }: { tenant: string; before: string | null }) {
  const answer = usePipeline(tenant);
  const status = present(answer);
  const unknown = missing(answer);
  const { doing } = useRun(tenant);
  const result = status && !status.is_running && status.last_run !== before ? status.last_result : null;
  if (!result)
    return (
      <div className="stack" role="status">
        {unknown && <Missing unknown={unknown} old={status !== undefined} />}
        <p>
          <b>{doing ? say("The run is on: {doing}.", { doing }) : say("The run is on.")}</b>
        </p>
        <progress aria-label={say("The run is on")} />
        <p className="note">{say("It goes on when this is closed.")}</p>
      </div>
    );
  const n = result.errors.length;
  return (
    <div className="stack" role="status">
      <p className={n ? "warn" : "good"}>
        <b>{n ? say("The run has ended with {n} {n|error|errors}.", { n }) : say("Done.")}</b>
      </p>
      <ul className="errors">
        {result.errors.map((each) => (
          <li key={each} className="bad">
            {each}
          </li>
        ))}
      </ul>
      <p className="note">{say("The figures behind this are the new ones.")}</p>
    </div>
  );
}
