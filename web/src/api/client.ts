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

/** Change something. */
export async function tell<T>(method: "POST" | "PUT" | "DELETE", path: string, body?: unknown): Promise<T> {
  return send<T>(method, address(path), body);
}

async function send<T>(method: string, url: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const headers: Record<string, string> = { Accept: "application/json" };
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
  return answer.status === 204 ? (undefined as T) : await answer.json();
}
