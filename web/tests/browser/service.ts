/** What the service answers without the page: the figures that the page must show. */
import type { Costs } from "../../src/api/shapes";
import { read, sum, type Units, write } from "../../src/money/money.ts";
import { BASE } from "./world.ts";

const API = new URL("../api/v1/", BASE);

/** The JSON of an address below `/api/v1/`. */
export async function ask<T>(path: string): Promise<T> {
  return (await answer(path)).json() as Promise<T>;
}

export const costsOf = (tenant: string, query: string): Promise<Costs> => ask(`tenants/${tenant}/costs?${query}`);

/** The lines of a file of CSV, by the names in its head. */
export async function lines(path: string): Promise<Record<string, string>[]> {
  const [head = [], ...rest] = cells(await (await answer(path)).text());
  return rest.map((line) => Object.fromEntries(head.map((name, n) => [name, line[n] ?? ""])));
}

async function answer(path: string): Promise<Response> {
  const found = await fetch(new URL(path, API));
  if (!found.ok) throw new Error(`${found.status} at ${path}: ${await found.text()}`);
  return found;
}

/** The cells of CSV (RFC 4180), line by line. */
export function cells(text: string): string[][] {
  const found: string[][] = [];
  let line: string[] = [];
  for (const [, quoted, plain = "", end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n|$)/g)) {
    if (end === "" && quoted === undefined && plain === "" && line.length === 0) break;
    line.push(quoted?.replaceAll('""', '"') ?? plain);
    if (end !== ",") {
      found.push(line);
      line = [];
    }
  }
  return found;
}

/** The sum of a column of amounts. */
export function total(rows: readonly Record<string, string>[], column = "amount"): Units {
  return sum(rows.map((each) => read(each[column] ?? "")));
}

/** How the page writes what a rounded amount stands for. */
export function exact(amount: Units | string, currency = "USD"): string {
  return `${currency} ${write(typeof amount === "string" ? read(amount) : amount).replace("-", "−")}`;
}
