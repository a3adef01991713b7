import { useState } from "preact/compat";
import { present } from "../../api/answer";
import { useAccess } from "../../api/me";
import { asProblem } from "../../api/problems";
import { useTenant } from "../../api/questions";
import { useHere } from "../../app/router";
import { useRun, useStartRun } from "../../app/run";
import { refused } from "../../format/rights";
import type { Dates } from "../../url/period";
import { say } from "../../words/say";
import { Recalculate } from "./recalculate";

/** Run now, or recalculate days; told why not, where the service cannot. */
export function RunControls({ shown }: { shown: Dates | null }) {
  const { tenant } = useHere();
  const name = tenant ?? "";
  const info = present(useTenant(name));
  const { isOn, suspended } = useRun(name);
  const start = useStartRun(name);
  const [asking, setAsking] = useState(false);
  const { isKnown, may } = useAccess(name);
  if (!info || !isKnown) return null;
  if (!may("run")) return <span className="note">{refused("run")}</span>;
  if (!info.features.can_run)
    return <span className="note">{say("Runs are started by another process, not from here.")}</span>;
  const closed = isOn || suspended !== null || start.isPending;
  return (
    <>
      <span role="status" className={start.isError ? "bad small" : "sr"}>
        {start.isError ? asProblem(start.error).detail : start.isSuccess && isOn ? say("The run has started.") : ""}
      </span>
      <button type="button" className="button" disabled={closed || !shown} onClick={() => setAsking(true)}>
        {say("Recalculate these days …")}
      </button>
      <button type="button" className="button" disabled={closed} onClick={() => start.mutate({})}>
        {say("Run now")}
      </button>
      {asking && shown && <Recalculate tenant={name} dates={shown} onClose={() => setAsking(false)} />}
    </>
  );
}
