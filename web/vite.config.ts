import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import { defineConfig, type Plugin, type Rolldown } from "vite";

const STATIC = "../src/chargeback/page/static";

/** Write a `.br` and a `.gz` beside every asset that compression makes smaller, so that no request has to wait for it. */
function precompressed(): Plugin {
  return {
    name: "precompressed",
    apply: "build",
    closeBundle() {
      const folder = join(import.meta.dirname, STATIC, "assets");
      for (const name of readdirSync(folder).filter((each) => /\.(js|css|svg)$/.test(each))) {
        const content = readFileSync(join(folder, name));
        writeFileSync(join(folder, `${name}.gz`), gzipSync(content, { level: 9 }));
        const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: content.length };
        writeFileSync(join(folder, `${name}.br`), brotliCompressSync(content, { params }));
      }
    },
  };
}

/** Let the first questions be asked as soon as their script is there: it waits for no style, and not for the rest of the
 * page, which is fetched beside it. */
function asksFirst(): Plugin {
  return {
    name: "asks-first",
    apply: "build",
    transformIndexHtml: {
      order: "post",
      handler: (html, { bundle }) => ({
        html: html.replace(
          '<script type="module" crossorigin src',
          '<script type="module" async fetchpriority="high" crossorigin src',
        ),
        tags: Object.values(bundle ?? {})
          .filter((each) => each.type === "chunk" && each.name === "page")
          .map(({ fileName }) => ({
            tag: "link",
            injectTo: "head",
            attrs: { rel: "modulepreload", crossorigin: true, href: `./${fileName}` },
          })),
      }),
    },
  };
}

/** What every page needs is in one file, because each file is a request: all that the root imports, directly or not. */
function neededBy(root: string): (id: string, context: Rolldown.ChunkingContext) => string | null {
  const needed = new Set<string>();
  const add = (id: string, context: Rolldown.ChunkingContext) => {
    if (needed.has(id)) return;
    needed.add(id);
    for (const each of context.getModuleInfo(id)?.importedIds ?? []) add(each, context);
  };
  return (id, context) => {
    add(root, context);
    return needed.has(id) ? "page" : null;
  };
}

export default defineConfig({
  base: "./",
  plugins: [asksFirst(), precompressed()],
  build: {
    rolldownOptions: {
      checks: { moduleLevelDirective: false }, // "use client" of libraries is for servers that render pages
      output: {
        codeSplitting: {
          groups: [
            { name: "first", tags: ["$initial"], priority: 1 },
            { name: neededBy(join(import.meta.dirname, "src", "root.tsx")), debugName: "page" },
          ],
        },
      },
    },
    outDir: STATIC,
    emptyOutDir: true,
    target: "es2023",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    chunkSizeWarningLimit: 400,
  },
  server: { proxy: { "/api": process.env.API ?? "http://127.0.0.1:8080" } },
});
