import { createContext, type ReactNode, useContext, useEffect, useMemo, useSyncExternalStore } from "react";
import { href, type Place, ROOT, readPlace } from "../url/link";
import { readView, type View } from "../url/view";

const MOVED = "chargeback:moved";

/** Go to an address of the page; `replace` for what is presentation only and needs no step back. */
export function go(to: string, { replace = false } = {}): void {
  if (replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  dispatchEvent(new Event(MOVED));
}

function subscribe(listener: () => void): () => void {
  addEventListener("popstate", listener);
  addEventListener(MOVED, listener);
  return () => {
    removeEventListener("popstate", listener);
    removeEventListener(MOVED, listener);
  };
}

/** Follow links of the page without loading it again. Anything but a plain click is the browser's. */
function follow(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
    return;
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  if (!link || link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
  if (!link.pathname.startsWith(ROOT) || link.hash) return;
  event.preventDefault();
  const samePage = link.pathname === location.pathname;
  go(link.href, { replace: link.dataset.replace !== undefined });
  if (!samePage) {
    scrollTo(0, 0);
    document.querySelector("main")?.focus({ preventScroll: true });
  }
}

export interface Here extends Place {
  view: View;
  /** The address of a view of this page, or of another one of this tenant. */
  to: (view: View, page?: string) => string;
}

const HereContext = createContext<Here | null>(null);

export function Router({ children }: { children: ReactNode }) {
  const address = useSyncExternalStore(subscribe, () => location.pathname + location.search);
  useEffect(() => {
    document.addEventListener("click", follow);
    return () => document.removeEventListener("click", follow);
  }, []);
  const here = useMemo(() => {
    const url = new URL(address, location.origin);
    const place = readPlace(url.pathname);
    const same = place.part === null ? place.page : `${place.page}/${encodeURIComponent(place.part)}`;
    const to = (view: View, page = same) => href(place.tenant ?? "", page, view);
    return { ...place, view: readView(url.search), to };
  }, [address]);
  return <HereContext value={here}>{children}</HereContext>;
}

/** Where the reader is: tenant, page and view, as the address says. */
export function useHere(): Here {
  const here = useContext(HereContext);
  if (!here) throw new Error("outside of the router");
  return here;
}
