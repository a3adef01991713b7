import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { usePipeline, useTenant } from "../api/questions";
import { spoken } from "../format/days";

export interface Run {
  isOn: boolean;
  /** What the run is doing, in words; empty where nobody says it. */
  doing: string;
  /** Why the tenant is suspended, or null. */
  suspended: string | null;
}

/** Whether a run is on, and what it does. */
export function useRun(tenant: string): Run {
  const status = usePipeline(tenant).data;
  const run = useTenant(tenant).data?.run;
  const isOn = status?.is_running ?? false;
  const where = [run?.stage?.replace(/_/g, " "), run?.date && spoken(run.date)].filter(Boolean).join(", ");
  return { isOn, doing: isOn ? where : "", suspended: status?.permanent_failure ?? null };
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
  const { isOn, doing, suspended } = useRun(tenant);
  if (suspended)
    return (
      <p className="banner bad" role="status">
        <b>Suspended.</b> {suspended} The figures stay as they are until the service is started again.
      </p>
    );
  if (!isOn) return null;
  return (
    <p className="banner" role="status">
      <b>A run is on{doing && `: ${doing}`}.</b> New figures appear by themselves.
    </p>
  );
}
