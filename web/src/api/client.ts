/** Requests to the API. Paths, parameters, bodies and answers are those of its own document (`schema.d.ts`). */
import { API } from "../url/link";
import { type Filter, filterPairs } from "../url/view";
import { problemOf, signedOut, unreachable } from "./problems";
import type { paths } from "./schema";

type Prefix = "/api/v1/tenants/{tenant_name}";
type Method = "get" | "post" | "put" | "delete";

/** The paths below a tenant, without what stands before them: `/costs`, `/cost-categories/{category_key}`. */
export type Path = keyof paths extends infer P ? (P extends `${Prefix}${infer Rest}` ? Rest : never) : never;

type Operation<P extends Path, M extends Method> = NonNullable<paths[`${Prefix}${P}`][M]>;
type AlsoCsv = { responses: { 200: { content: { "application/json": unknown; "text/csv": unknown } } } };
/** A path whose answer is a file, too: with `.csv` behind it. */
export type FilePath = { [P in Path]: Operation<P, "get"> extends AlsoCsv ? `${P}.csv` : never }[Path];
/** What has an address: a path, or the file of one. */
export type Addressed = Path | FilePath;
type Asks<A extends Addressed> = A extends Path ? A : A extends `${infer P extends Path}.csv` ? P : never;
type Content<T> = T extends { content: { "application/json": infer Body } } ? Body : never;
type Success<T> = T extends { responses: infer R } ? Content<R[keyof R & (200 | 201 | 202)]> : never;
type Names<P extends string> = P extends `${string}{${infer Name}}${infer Rest}` ? Name | Names<Rest> : never;
/** A body as it may be sent: what has a default can be left out. */
type Sent<T> = T extends readonly (infer Each)[]
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

interface Change<P extends Path, M extends Method> extends Asked<P, M> {
  body?: Operation<P, M> extends { requestBody?: infer B } ? Sent<Content<NonNullable<B>>> : never;
  /** Which version is changed. */
  headers?: Readonly<Record<string, string>>;
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

/** Ask a path of a tenant. Throws a {@link Problem}. The browser keeps answers with their ETag and asks whether they
 * changed. */
export const get = <P extends Path>(tenant: string, path: P, asked: Asked<P>, signal?: AbortSignal) =>
  read<Answered<P>>(address(tenant, path, asked), signal);

/** What was asked before anything was there to show it, by address; `data` once it is answered. */
const early = new Map<string, { answer: Promise<unknown>; data?: unknown }>();

/** Ask an address whose answer is wanted as soon as there is something to show it: whoever reads it first has it. */
export function askEarly(url: string): void {
  const asked: { answer: Promise<unknown>; data?: unknown } = { answer: read(url) };
  early.set(url, asked);
  // Whoever reads it is told what went wrong.
  asked.answer.then(
    (data) => {
      asked.data = data;
    },
    () => undefined,
  );
}

/** What was asked early, if it is answered and was not read yet. */
export function takeEarly<T>(url: string): T | undefined {
  const data = early.get(url)?.data;
  if (data !== undefined) early.delete(url);
  return data as T | undefined;
}

/** What an address of the API answers. */
export async function read<T>(url: string, signal?: AbortSignal): Promise<T> {
  const asked = early.get(url);
  early.delete(url);
  if (asked) return asked.answer as Promise<T>;
  return (await answerOf("GET", url, { signal: signal ?? null })).json();
}

/** Something of the API, and the ETag that a change of it must name. */
export interface Versioned<T> {
  body: T;
  etag: string | null;
}

export async function getVersion<P extends Path>(
  tenant: string,
  path: P,
  asked: Asked<P>,
  signal?: AbortSignal,
): Promise<Versioned<Answered<P>>> {
  return versionOf(await answerOf("GET", address(tenant, path, asked), { signal: signal ?? null }));
}

/** Change something of a tenant. */
export async function send<M extends "post" | "put", P extends Path>(
  method: M,
  tenant: string,
  path: P,
  { body, headers, ...asked }: Change<P, M>,
): Promise<Answered<P, M>> {
  return (await answerTo(method, address<P, M>(tenant, path, asked), body, headers)).json();
}

/** Change something of a tenant that has versions. */
export async function sendVersion<M extends "post" | "put", P extends Path>(
  method: M,
  tenant: string,
  path: P,
  { body, headers, ...asked }: Change<P, M>,
): Promise<Versioned<Answered<P, M>>> {
  return versionOf(await answerTo(method, address<P, M>(tenant, path, asked), body, headers));
}

const answerTo = (method: string, url: string, body: unknown = {}, headers: Readonly<Record<string, string>> = {}) =>
  answerOf(method.toUpperCase(), url, { body: JSON.stringify(body), headers });

async function versionOf<T>(answer: Response): Promise<Versioned<T>> {
  return { body: await answer.json(), etag: answer.headers.get("ETag") };
}

/** Remove what an address of the API is of. */
export async function remove(url: string, headers: Readonly<Record<string, string>> = {}): Promise<void> {
  await answerOf("DELETE", url, { body: "{}", headers });
}

/** The same address for a change that is meant to move amounts of closed months. */
export function restating(url: string, reason: string): string {
  return `${url}${url.includes("?") ? "&" : "?"}${new URLSearchParams({ restate_closed: "true", reason })}`;
}

async function answerOf(method: string, url: string, { headers, ...more }: RequestInit): Promise<Response> {
  const json = method === "GET" ? {} : { "Content-Type": "application/json" };
  let answer: Response;
  try {
    const all = { Accept: "application/json", ...json, ...headers };
    answer = await fetch(url, { method, cache: "no-cache", headers: all, ...more });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw unreachable(method !== "GET");
  }
  if (!answer.ok) throw await problemOf(answer);
  if (answer.status !== 204 && !/[/+]json\b/.test(answer.headers.get("Content-Type") ?? ""))
    throw signedOut(answer.status);
  return answer;
}
