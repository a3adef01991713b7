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
  /** What the page is about, where its address says that behind its name: the key of a cost category. */
  part: string | null;
}

export const HOME = "costs";
export const CATEGORIES = "categories";
export const MONTH_END = "month-end";
/** The pages whose addresses may have a part behind their names: a cost category, a month. */
const PARTED = [CATEGORIES, MONTH_END];

export function readPlace(pathname: string): Place {
  const [tenant = "", page = "", part = "", ...more] = pathname.slice(ROOT.length).split("/").map(decodeURIComponent);
  const known = !more.some(Boolean) && (!part || PARTED.includes(page));
  return { tenant: tenant || null, page: known ? page || HOME : "?", part: (known && part) || null };
}

/** The address of a page of a tenant. */
export function href(tenant: string, page: string, view?: View): string {
  return `${ROOT}${encodeURIComponent(tenant)}/${page}${view ? writeView(view) : ""}`;
}
