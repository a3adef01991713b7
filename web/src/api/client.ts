import { API } from "../url/link";
import { problemOf, unreachable } from "./problems";

export type Query = readonly (readonly [string, string])[];

/** The address of something of the API, such as `tenants/acme/costs`. */
export function address(path: string, query: Query = []): string {
  const text = new URLSearchParams(query.map(([key, value]) => [key, value])).toString().replaceAll("%3A", ":");
  return API + path + (text && `?${text}`);
}

/** Ask the API. Throws a {@link Problem}. The browser keeps answers with their ETag and asks whether they changed. */
export async function ask<T>(path: string, query: Query, signal?: AbortSignal): Promise<T> {
  return send<T>("GET", address(path, query), undefined, signal);
}

/** Something of the API, and the ETag that a change of it must name. */
export interface Versioned<T> {
  body: T;
  etag: string | null;
}

export async function askVersion<T>(path: string, signal?: AbortSignal): Promise<Versioned<T>> {
  const answer = await answerOf("GET", address(path), undefined, signal);
  return { body: await answer.json(), etag: answer.headers.get("ETag") };
}

type Headers = Record<string, string>;

/** Change something. The headers say which version is changed. */
export async function tell<T>(
  method: "POST" | "PUT" | "DELETE",
  path: string,
  body?: unknown,
  { query = [], headers = {} }: { query?: Query; headers?: Headers } = {},
): Promise<T> {
  return send<T>(method, address(path, query), body, undefined, headers);
}

async function send<T>(method: string, url: string, body?: unknown, signal?: AbortSignal, more?: Headers): Promise<T> {
  const answer = await answerOf(method, url, body, signal, more);
  return answer.status === 204 ? (undefined as T) : await answer.json();
}

async function answerOf(
  method: string,
  url: string,
  body?: unknown,
  signal?: AbortSignal,
  more: Headers = {},
): Promise<Response> {
  const headers: Headers = { Accept: "application/json", ...more };
  if (method !== "GET") headers["Content-Type"] = "application/json";
  const request: RequestInit = { method, headers, cache: "no-cache" };
  if (method !== "GET") request.body = JSON.stringify(body ?? {});
  if (signal) request.signal = signal;
  let answer: Response;
  try {
    answer = await fetch(url, request);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw unreachable();
  }
  if (!answer.ok) throw await problemOf(answer);
  return answer;
}
