/** Requests to the API. Paths, parameters, bodies and answers are those of its own document (`schema.d.ts`). */

import { say } from "../words/say";
import {
  type Answered,
  type Asked,
  address,
  type Content,
  type Method,
  type Operation,
  type Path,
  type Sent,
} from "./address";
import { earlyAnswer, fetchJson, isJson } from "./early";
import { problemOf, signedOut, Unreachable } from "./problems";

interface Change<P extends Path, M extends Method> extends Asked<P, M> {
  body?: Operation<P, M> extends { requestBody?: infer B } ? Sent<Content<NonNullable<B>>> : never;
  /** Which version is changed. */
  headers?: Readonly<Record<string, string>>;
}

/** Ask a path of a tenant. Throws a {@link Problem}. */
export const get = <P extends Path>(tenant: string, path: P, asked: Asked<P>, signal?: AbortSignal) =>
  read<Answered<P>>(address(tenant, path, asked), signal);

/** What an address of the API answers. */
export async function read<T>(url: string, signal?: AbortSignal): Promise<T> {
  return (await checked(earlyAnswer(url) ?? fetchJson(url, { signal: signal ?? null }))).json();
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

/** The condition of a change to what is still of the version that was shown. Throws if somebody else has changed it. */
export async function ifStill(
  version: number,
  present: Promise<Versioned<{ version: number }>>,
): Promise<Record<string, string>> {
  const { body, etag } = await present;
  if (body.version !== version) throw new Error(say("Somebody else has changed it meanwhile."));
  return etag ? { "If-Match": etag } : {};
}

/** Remove what an address of the API is of. */
export async function remove(url: string, headers: Readonly<Record<string, string>> = {}): Promise<void> {
  await answerOf("DELETE", url, { body: "{}", headers });
}

/** The same address for a change that is meant to move amounts of closed months. */
export function restating(url: string, reason: string): string {
  return `${url}${url.includes("?") ? "&" : "?"}${new URLSearchParams({ restate_closed: "true", reason })}`;
}

const answerOf = (method: string, url: string, { headers, ...more }: RequestInit) =>
  checked(
    fetchJson(url, {
      method,
      headers: { ...(method !== "GET" && { "Content-Type": "application/json" }), ...headers },
      ...more,
    }),
    method !== "GET",
  );

/** What a proxy answers, with a page of its own, for a service that it does not reach; 504 is a question that takes long. */
const GATEWAY: ReadonlySet<number> = new Set([502, 503]);

/** An answer of the API. Throws a {@link Problem} if there is none, or if it is a refusal, or somebody else's. */
async function checked(asked: Promise<Response>, isChange = false): Promise<Response> {
  let answer: Response;
  try {
    answer = await asked;
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Unreachable(isChange);
  }
  if (GATEWAY.has(answer.status) && !isJson(answer)) throw new Unreachable(isChange, answer.status);
  if (!answer.ok) throw await problemOf(answer);
  if (answer.status !== 204 && !isJson(answer)) throw signedOut(answer.status);
  return answer;
}
