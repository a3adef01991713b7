import { notifyManager, type Query, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useCallback, useSyncExternalStore } from "preact/compat";
import { Unreachable } from "../api/problems";
import { useIsOnline } from "../ui/part";
import { Failure, IsSaidAbove, Offline } from "../ui/states";

const UNREACHABLE = new Unreachable();

const isLost = ({ state }: Query) => (state.fetchFailureReason ?? state.error) instanceof Unreachable;

/** Says once above all cards that there is no network, or that several questions do not reach the service. A card whose
 * question is the only one says it itself. */
export function Connection({ children }: { children: ReactNode }) {
  const client = useQueryClient();
  const cache = client.getQueryCache();
  const active = () => cache.findAll({ type: "active" });
  const isOnline = useIsOnline();
  const isReached = useSyncExternalStore(
    useCallback((onChange) => cache.subscribe(notifyManager.batchCalls(onChange)), [cache]),
    () => active().filter(isLost).length < 2,
  );
  const isOld = active().some(({ state }) => state.data !== undefined);
  return (
    <>
      {!isOnline && <Offline old={isOld} />}
      {isOnline && !isReached && (
        <Failure
          error={UNREACHABLE}
          retry={() => client.refetchQueries({ type: "active", predicate: isLost })}
          old={isOld}
        />
      )}
      <IsSaidAbove value={!isOnline || !isReached}>{children}</IsSaidAbove>
    </>
  );
}
