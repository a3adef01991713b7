import { type View, writeView } from "./view";

/** Where the page is mounted, with a slash at its end, whatever path a proxy puts before it. */
export const ROOT: string = mounted();

/** Where the API is, with a slash at its end. */
export const API: string = new URL("../api/v1/", new URL(ROOT, location.href)).pathname;

/** Read the server's `<base>` once and make it absolute: it would move with every address that the page takes on. */
function mounted(): string {
  const root = new URL("./", document.baseURI).pathname;
  const base = document.querySelector("base");
  if (base) base.href = root;
  return root;
}

export interface Place {
  tenant: string | null;
  page: string;
}

export const HOME = "costs";

export function readPlace(pathname: string): Place {
  const [tenant = "", page = "", ...more] = pathname.slice(ROOT.length).split("/").map(decodeURIComponent);
  return { tenant: tenant || null, page: more.some(Boolean) ? "?" : page || HOME };
}

/** The address of a page of a tenant. */
export function href(tenant: string, page: string, view?: View): string {
  return `${ROOT}${encodeURIComponent(tenant)}/${page}${view ? writeView(view) : ""}`;
}
