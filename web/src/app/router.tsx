import { createContext, type ReactNode, useContext, useEffect, useMemo, useSyncExternalStore } from "preact/compat";
import { href, type Place, ROOT, readPlace } from "../url/link";
import { mistakesOf } from "../url/mistakes";
import { readView, type View } from "../url/view";

const MOVED = "chargeback:moved";

/** What a reader would lose by leaving the page, as a question; null for nothing. */
let asksToLeave: string | null = null;
/** The address that is shown, and the one before it, where a step back leads there. */
let shown = location.href;
let before: string | null = null;

/** Ask before the page is left, as long as there is a question. */
export function useLeaving(question: string | null): void {
  useEffect(() => {
    if (question === null) return;
    const hold = (event: BeforeUnloadEvent) => event.preventDefault();
    asksToLeave = question;
    addEventListener("beforeunload", hold);
    return () => {
      asksToLeave = null;
      removeEventListener("beforeunload", hold);
    };
  }, [question]);
}

const pathOf = (address: string) => new URL(address, location.href).pathname;

function mayLeaveFor(to: string): boolean {
  return asksToLeave === null || pathOf(to) === pathOf(shown) || confirm(asksToLeave);
}

/** Go to an address of the page; `replace` for what is presentation only and needs no step back. Another page begins at
 * its top, and with it whoever walks by keys. */
export function go(to: string, { replace = false } = {}): void {
  if (!mayLeaveFor(to)) return;
  const isAnother = pathOf(to) !== pathOf(shown);
  if (replace) history.replaceState(null, "", to);
  else {
    before = shown;
    history.pushState(null, "", to);
  }
  arrive();
  if (!isAnother) return;
  scrollTo(0, 0);
  document.querySelector("main")?.focus({ preventScroll: true });
}

/** Close what has an address of its own: a step back, if the reader came from where `to` leads. */
export function goBack(to: string): void {
  if (before === new URL(to, location.href).href) history.back();
  else go(to, { replace: true });
}

function arrive(): void {
  shown = location.href;
  dispatchEvent(new Event(MOVED));
}

/** Back and Forward have moved already when they can be asked: who stays returns to where they were. */
function onPop(): void {
  before = null;
  if (mayLeaveFor(location.href)) arrive();
  else history.pushState(null, "", shown);
}

function subscribe(listener: () => void): () => void {
  addEventListener(MOVED, listener);
  return () => removeEventListener(MOVED, listener);
}

/** Follow links of the page without loading it again. Anything but a plain click is the browser's. */
function follow(event: MouseEvent): void {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
    return;
  const link = event.target instanceof Element ? event.target.closest("a") : null;
  if (!link || link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
  if (!link.pathname.startsWith(ROOT) || link.hash) return;
  event.preventDefault();
  go(link.href, { replace: link.dataset.replace !== undefined });
}

export interface Here extends Place {
  view: View;
  /** What the address says of the view that cannot be, in words. */
  mistakes: readonly string[];
  /** The address of a view of this page, or of another one of this tenant. */
  to: (view: View, page?: string) => string;
}

const HereContext = createContext<Here | null>(null);

export function Router({ children }: { children: ReactNode }) {
  const address = useSyncExternalStore(subscribe, () => location.pathname + location.search);
  useEffect(() => {
    document.addEventListener("click", follow);
    addEventListener("popstate", onPop);
    return () => {
      document.removeEventListener("click", follow);
      removeEventListener("popstate", onPop);
    };
  }, []);
  const here = useMemo(() => {
    const url = new URL(address, location.origin);
    const place = readPlace(url.pathname);
    const same = place.part === null ? place.page : `${place.page}/${encodeURIComponent(place.part)}`;
    const to = (view: View, page = same) => href(place.tenant ?? "", page, view);
    return { ...place, view: readView(url.search), mistakes: mistakesOf(url.search), to };
  }, [address]);
  return <HereContext value={here}>{children}</HereContext>;
}

/** Where the reader is: tenant, page and view, as the address says. */
export function useHere(): Here {
  const here = useContext(HereContext);
  if (!here) throw new Error("outside of the router");
  return here;
}
