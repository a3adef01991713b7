/** The fake service on the loopback, with the page as the real one serves it: its files, and their headers. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { above, answer, type Organisation, organisation } from "./fake.ts";
import { etagOf, withCategory, withTeams } from "./fakepages.ts";

interface File {
  status: number;
  headers: Record<string, string>;
  body: Uint8Array;
}

export interface FakeServer {
  /** Where the page is, with a slash at the end. */
  base: string;
  /** From now on, the answers are those of this organisation. */
  serve: (of: Organisation) => void;
  close: () => void;
}

async function read(address: string): Promise<File> {
  const found = await fetch(address, { headers: { "Accept-Encoding": "identity" } });
  const headers = [...found.headers].filter(([name]) => !["content-length", "connection"].includes(name));
  return { status: found.status, headers: Object.fromEntries(headers), body: await found.bytes() };
}

/** Start it; `page` is where a service serves the page. */
export async function fakeServer(page: string): Promise<FakeServer> {
  const files = new Map<string, Promise<File>>();
  let of = organisation();

  async function reply(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? "", page);
    const [, path, below] = /\/api\/v1\/(tenants(?=\/acme)|[^/]+)(?:\/acme(.*))?$/.exec(url.pathname) ?? [];
    if (path === undefined) {
      const asked = files.get(url.href) ?? read(url.href);
      files.set(url.href, asked);
      const { status, headers, body } = await asked;
      response.writeHead(status, headers).end(body);
      return;
    }
    const change = request.method === "GET" ? undefined : JSON.parse((await text(request)) || "{}");
    const isSaved = request.method === "PUT" && !url.searchParams.has("dry_run");
    if (isSaved && below?.startsWith("/cost-categories/") && change?.document) of = withCategory(of, change.document);
    const json = below === undefined ? above(of, path) : answer(of, below, url.searchParams, change);
    if (below?.startsWith("/tags/bulk") && change?.items && !change.dry_run) of = withTeams(of, change.items);
    const problem = { title: "Not found", status: 404, detail: "There is no such thing." };
    response.writeHead(json === undefined ? 404 : 200, { "Content-Type": "application/json", ETag: etagOf(of) });
    response.end(JSON.stringify(json ?? problem));
  }

  const server = createServer((request, response) => void reply(request, response)).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  return {
    base: `http://127.0.0.1:${(server.address() as AddressInfo).port}${new URL(page).pathname}`,
    serve: (another) => {
      of = another;
    },
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}
