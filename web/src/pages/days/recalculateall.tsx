import { useState } from "react";
import { useHere } from "../../app/router";
import { useCanRun, useRun } from "../../app/run";
import { count, range } from "../../format/days";
import { Drawer } from "../../ui/drawer";
import { Refusal } from "../../ui/refusal";
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
            Recalculate all pending …
          </button>
          <span className="note">
            {count(pending.days, "day")}, {range(pending.dates.start, pending.dates.end)}
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
    <Drawer title="Recalculate all pending" onClose={onClose}>
      {start.isSuccess ? (
        <Progress tenant={tenant} before={before} />
      ) : (
        <div className="stack">
          <p>
            <b>
              {count(days, "day")} {days === 1 ? "waits" : "wait"}: {range(dates.start, dates.end)}.
            </b>{" "}
            One run fetches what is missing and calculates {days === 1 ? "it" : "them"}. Days between that are complete
            stay as they are.
          </p>
          {others > 0 && (
            <p className="note">
              {count(others, "more day")} {others === 1 ? "is" : "are"} not counted: recalculating does not help while a
              source refuses, or has no bill.
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
              Recalculate {count(days, "day")}
            </button>
            <button type="button" className="button" onClick={onClose}>
              Cancel
            </button>
          </p>
        </div>
      )}
    </Drawer>
  );
}
