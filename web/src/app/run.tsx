import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef } from "react";
import { present } from "../api/answer";
import { useAccess } from "../api/me";
import { useHealth, usePipeline, useTenant } from "../api/questions";
import { instant, spoken } from "../format/days";
import { Sources } from "../pages/days/health";
import { Empty } from "../ui/states";
import { useHere } from "./router";

export interface Run {
  isOn: boolean;
  /** What the run is doing, in words; empty where nobody says it. */
  doing: string;
  /** Why the tenant is suspended, or null. */
  suspended: string | null;
}

/** Whether a run is on, and what it does. */
export function useRun(tenant: string): Run {
  const status = present(usePipeline(tenant));
  const run = present(useTenant(tenant))?.run;
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

/** In place of figures of a tenant of which no day is calculated: an empty page would say that nothing costs anything. */
export function NothingCalculated({ tenant }: { tenant: string }) {
  const here = useHere();
  const status = present(usePipeline(tenant));
  const errors = status?.last_result?.errors;
  const { isKnown, seesAll } = useAccess(tenant);
  const health = present(useHealth(tenant, isKnown && seesAll));
  return (
    <Empty title="No day is calculated yet">
      <p>The first figures are there when a day’s bill and its usage have been read, and the day is calculated.</p>
      {status && <p>{status.last_run ? `The last run ended ${instant(status.last_run)}.` : "No run has ended yet."}</p>}
      {errors && errors.length > 0 && (
        <ul className="errors" aria-label="Errors of the last run">
          {errors.map((each) => (
            <li key={each} className="bad">
              {each}
            </li>
          ))}
        </ul>
      )}
      <a className="button" href={here.to({ ...here.view, filters: [], extra: {} }, "days")}>
        Days and runs
      </a>
      {health && <Sources health={health} />}
    </Empty>
  );
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
