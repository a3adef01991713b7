/** Addresses of the API, and what its own document (`schema.d.ts`) says of their parameters, bodies and answers. */
import { API } from "../url/link";
import { type Filter, filterPairs } from "../url/view";
import type { paths } from "./schema";

type Prefix = "/api/v1/tenants/{tenant_name}";
export type Method = "get" | "post" | "put" | "delete";

/** The paths below a tenant, without what stands before them: `/costs`, `/cost-categories/{category_key}`. */
export type Path = keyof paths extends infer P ? (P extends `${Prefix}${infer Rest}` ? Rest : never) : never;

export type Operation<P extends Path, M extends Method> = NonNullable<paths[`${Prefix}${P}`][M]>;
type AlsoCsv = { responses: { 200: { content: { "application/json": unknown; "text/csv": unknown } } } };
/** A path whose answer is a file, too: with `.csv` behind it. */
export type FilePath = { [P in Path]: Operation<P, "get"> extends AlsoCsv ? `${P}.csv` : never }[Path];
/** What has an address: a path, or the file of one. */
export type Addressed = Path | FilePath;
type Asks<A extends Addressed> = A extends Path ? A : A extends `${infer P extends Path}.csv` ? P : never;
export type Content<T> = T extends { content: { "application/json": infer Body } } ? Body : never;
type Success<T> = T extends { responses: infer R } ? Content<R[keyof R & (200 | 201 | 202)]> : never;
type Names<P extends string> = P extends `${string}{${infer Name}}${infer Rest}` ? Name | Names<Rest> : never;
/** A body as it may be sent: what has a default can be left out. */
export type Sent<T> = T extends readonly (infer Each)[]
  ? readonly Sent<Each>[]
  : T extends object
    ? { readonly [K in keyof T]?: Sent<T[K]> }
    : T;

/** What a path of a tenant answers. */
export type Answered<P extends Path, M extends Method = "get"> = Success<Operation<P, M>>;

/** The parameters of a path; filters, whose names are open, are apart. */
export type Query<P extends Addressed, M extends Method = "get"> =
  Operation<Asks<P>, M> extends { parameters: { query?: infer Q } }
    ? { readonly [K in keyof Q as K extends `${string}<${string}` ? never : K]?: Q[K] }
    : never;

/** What is asked of a path: its parameters, the filters of a view, and what stands for the braces in the path. The
 * questions of two paths are never compared: there are too many of both. */
export interface Asked<in out P extends Addressed, in out M extends Method = "get"> {
  query?: Query<P, M>;
  filters?: readonly Filter[];
  at?: Readonly<Record<Names<P>, string>>;
}

/** The address of a path of a tenant, such as `/costs` or `/costs.csv`. */
export function address<P extends Addressed, M extends Method = "get">(
  tenant: string,
  path: P,
  { query, filters = [], at }: Asked<P, M> = {},
): string {
  const named: Readonly<Record<string, string>> = at ?? {};
  const filled = path.replace(/\{(\w+)\}/g, (_, name) => encodeURIComponent(named[name] ?? ""));
  const pairs = Object.entries<unknown>(query ?? {}).flatMap(([name, value]) =>
    [value].flat().map((each) => [name, String(each)]),
  );
  const text = new URLSearchParams([...pairs, ...filterPairs(path.replace(/\.csv$/, ""), filters)]).toString();
  return `${API}tenants/${encodeURIComponent(tenant)}${filled}${text && `?${text.replaceAll("%3A", ":")}`}`;
}
