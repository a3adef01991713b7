import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "preact/compat";
import { present } from "../api/answer";
import { send } from "../api/client";
import { useAccess } from "../api/me";
import { usePipeline, useTenant } from "../api/questions";
import type { RunBody, RunProgress } from "../api/shapes";
import { spoken } from "../format/days";
import { Refusal } from "../ui/refusal";
import { say } from "../words/say";

export interface Run {
  isOn: boolean;
  /** How far it is; null where nobody says it. */
  progress: RunProgress | null;
  /** What the run is doing, in words; empty where nobody says it. */
  doing: string;
  /** Why the tenant is suspended, or null. */
  suspended: string | null;
}

/** Whether a run is on, and what it does. */
export function useRun(tenant: string): Run {
  const status = present(usePipeline(tenant));
  const progress = status?.progress ?? null;
  const isOn = status?.is_running ?? false;
  return { isOn, progress, doing: progress ? inWords(progress) : "", suspended: status?.permanent_failure ?? null };
}

const STAGES: Record<string, string> = {
  gathering: say("gathering"),
  calculating: say("calculating"),
  topic_overlay: say("topic overlay"),
  emitting: say("emitting"),
  retention: say("retention"),
};

/** `calculating, 12 of 35 days, Tue 3 Nov`, as far as the run says it. */
export function inWords({ stage, date, done, total }: RunProgress): string {
  const days = total > 0 && say("{done} of {n} {n|day|days}", { done, n: total });
  return [stage && (STAGES[stage] ?? stage.replace(/_/g, " ")), days, date && spoken(date)].filter(Boolean).join(", ");
}

/** Whether this reader can start runs here: who has the right, of a service that starts them, of a tenant that goes on. */
export function useCanRun(tenant: string): boolean {
  const { may } = useAccess(tenant);
  const canRun = present(useTenant(tenant))?.features.can_run ?? false;
  const { suspended } = useRun(tenant);
  return may("run") && canRun && suspended === null;
}

/** Start a run; what it does then is told above every page. */
export function useStartRun(tenant: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (body: Partial<RunBody>) => send("post", tenant, "/pipeline/run", { body }),
    onSettled: () => void client.invalidateQueries(),
  });
}

/** Ask everything again when a run has ended: it may have changed every figure. */
export function useFreshFigures(tenant: string): void {
  const { isOn } = useRun(tenant);
  const wasOn = useRef(isOn);
  const client = useQueryClient();
  useEffect(() => {
    if (wasOn.current && !isOn) void client.invalidateQueries();
    wasOn.current = isOn;
  }, [isOn, client]);
}

/** Above every page: a run that is on, or a tenant that is suspended. */
export function RunBanner({ tenant }: { tenant: string }) {
  const { isOn, progress, doing, suspended } = useRun(tenant);
  if (suspended)
    return (
      <p className="banner bad" role="status">
        <b>{say("Suspended.")}</b> {suspended} {say("The figures stay as they are until the service is started again.")}
      </p>
    );
  if (!isOn) return null;
  return (
    <div className="banner">
      <p role="status">
        <b>{doing ? say("A run is on: {doing}.", { doing }) : say("A run is on.")}</b>{" "}
        {say("New figures appear by themselves.")}
      </p>
      {progress && progress.total > 0 && (
        <progress aria-label={say("Days of this stage")} value={progress.done} max={progress.total} />
      )}
      {progress && <CancelRun tenant={tenant} isCancelled={progress.is_cancelled} />}
    </div>
  );
}

/** End the run that is on; what it has written stays, and the next run continues. */
function CancelRun({ tenant, isCancelled }: { tenant: string; isCancelled: boolean }) {
  const client = useQueryClient();
  const { may } = useAccess(tenant);
  const cancel = useMutation({
    mutationFn: () => send<"post", "/pipeline/cancel">("post", tenant, "/pipeline/cancel", {}),
    onSettled: () => void client.invalidateQueries(),
  });
  if (isCancelled) return <span className="note">{say("It is cancelled, and ends in some seconds.")}</span>;
  if (!may("run")) return null;
  return (
    <>
      <button type="button" className="button" disabled={cancel.isPending} onClick={() => cancel.mutate()}>
        {say("Cancel the run")}
      </button>
      <Refusal of={cancel} />
    </>
  );
}
