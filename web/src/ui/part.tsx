import { onlineManager } from "@tanstack/react-query";
import { type ComponentType, lazy, type ReactNode, useSyncExternalStore } from "preact/compat";
import { Loading } from "./states";

/** A part of the page whose code is loaded when it is first shown. What could not be loaded for want of a network is
 * loaded when there is one again. */
export const part = <P extends object>(load: () => Promise<ComponentType<P>>) =>
  lazy(async () => ({ default: await loaded(load) }));

async function loaded<T>(load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (error) {
    if (onlineManager.isOnline()) throw error;
    await new Promise<void>((resolve) => {
      const stop = onlineManager.subscribe(() => {
        stop();
        resolve();
      });
    });
    return loaded(load);
  }
}

/** Whether the browser has a network. */
export const useIsOnline = () => useSyncExternalStore(onlineManager.subscribe, () => onlineManager.isOnline());

/** In the place of a part until its code is there. */
export function Awaited({ children }: { children?: ReactNode }) {
  return useIsOnline() ? <Loading>{children}</Loading> : children;
}
