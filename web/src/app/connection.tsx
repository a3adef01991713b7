import { notifyManager, type Query, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useCallback, useSyncExternalStore } from "preact/compat";
import { isEverywhere } from "../api/problems";
import { useIsOnline } from "../ui/part";
import { Failure, IsSaidAbove, Offline } from "../ui/states";

const errorOf = ({ state }: Query) => state.fetchFailureReason ?? state.error;
const isLost = (query: Query) => isEverywhere(errorOf(query));

/** Says once above all cards that there is no network, or, if several questions found that out, no service or no session.
 * A card whose question is the only one says it itself. */
export function Connection({ children }: { children: ReactNode }) {
  const client = useQueryClient();
  const cache = client.getQueryCache();
  const active = () => cache.findAll({ type: "active" });
  const isOnline = useIsOnline();
  const problem = useSyncExternalStore(
    useCallback((onChange) => cache.subscribe(notifyManager.batchCalls(onChange)), [cache]),
    () => {
      const [first, second] = active().filter(isLost);
      return first && second ? errorOf(first) : null;
    },
  );
  const isOld = active().some(({ state }) => state.data !== undefined);
  return (
    <>
      {!isOnline && <Offline old={isOld} />}
      {isOnline && problem && (
        <Failure
          error={problem}
          retry={() => client.refetchQueries({ type: "active", predicate: isLost })}
          old={isOld}
        />
      )}
      <IsSaidAbove value={!isOnline || problem !== null}>{children}</IsSaidAbove>
    </>
  );
}
