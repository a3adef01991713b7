import { useState } from "preact/compat";
import { useHere } from "../../app/router";
import { useCanRun, useRun } from "../../app/run";
import { range } from "../../format/days";
import { Drawer } from "../../ui/drawer";
import { Refusal } from "../../ui/refusal";
import { say } from "../../words/say";
import { Progress, useFollowedRun } from "./followed";
import type { Pending } from "./pending";

/** Calculate every day that waits and that a run can end; nothing where there is none, or the reader may not. The dialog
 * outlives the last of these days, to say how the run went. */
export function RecalculateAll({ pending }: { pending: Pending | null }) {
  const tenant = useHere().tenant ?? "";
  const { isOn } = useRun(tenant);
  const isOffered = useCanRun(tenant);
  const [asked, setAsked] = useState<Pending | null>(null);
  return (
    <>
      {pending && isOffered && (
        <p className="tools">
          <button type="button" className="button" disabled={isOn} onClick={() => setAsked(pending)}>
            {say("Recalculate all pending …")}
          </button>
          <span className="note">
            {say("{n} {n|day|days}, {range}", {
              n: pending.days,
              range: range(pending.dates.start, pending.dates.end),
            })}
          </span>
        </p>
      )}
      {asked && <Question tenant={tenant} pending={asked} onClose={() => setAsked(null)} />}
    </>
  );
}

/** Asks once. The run is told the dates and nothing else: it calculates what waits within them, and leaves the complete
 * days between as they are. */
function Question({
  tenant,
  pending: { days, dates, others },
  onClose,
}: {
  tenant: string;
  pending: Pending;
  onClose: () => void;
}) {
  const { start, run, before } = useFollowedRun(tenant);
  return (
    <Drawer title={say("Recalculate all pending")} onClose={onClose}>
      {start.isSuccess ? (
        <Progress tenant={tenant} before={before} />
      ) : (
        <div className="stack">
          <p>
            <b>{say("{n} {n|day waits|days wait}: {range}.", { n: days, range: range(dates.start, dates.end) })}</b>{" "}
            {say(
              "One run fetches what is missing and calculates {n|it|them}. Days between that are complete stay as they are.",
              { n: days },
            )}
          </p>
          {others > 0 && (
            <p className="note">
              {say(
                "{n} more {n|day is|days are} not counted: recalculating does not help while a source refuses, or has no bill.",
                { n: others },
              )}
            </p>
          )}
          <Refusal of={start} />
          <p className="tools">
            <button
              type="button"
              className="button primary"
              disabled={start.isPending}
              onClick={() => run({ start_date: dates.start, end_date: dates.end })}
            >
              {say("Recalculate {n} {n|day|days}", { n: days })}
            </button>
            <button type="button" className="button" onClick={onClose}>
              {say("Cancel")}
            </button>
          </p>
        </div>
      )}
    </Drawer>
  );
}
