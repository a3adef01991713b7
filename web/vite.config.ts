import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { brotliCompressSync, constants, gzipSync } from "node:zlib";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

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

/** Give the first questions a script of their own, which runs as soon as it is there: it waits for no style, and not for
 * the rest of the page. */
function asksFirst(): Plugin {
  return {
    name: "asks-first",
    apply: "build",
    transformIndexHtml: {
      order: "post",
      handler: (html) =>
        html.replace(
          /<link rel="modulepreload" crossorigin (href="[^"]*\/first-[^"]+")>/,
          (_, href: string) =>
            `<script type="module" async fetchpriority="high" crossorigin src${href.slice(4)}></script>`,
        ),
    },
  };
}

export default defineConfig({
  base: "./",
  plugins: [react(), asksFirst(), precompressed()],
  build: {
    rolldownOptions: {
      input: ["index.html", "src/first.ts"],
      // Each file is a request: what every page needs is in one, what asks first in another.
      output: {
        codeSplitting: {
          groups: [
            { name: "first", test: /[\\/]src[\\/]first\.ts$/, priority: 1 },
            { name: "page", tags: ["$initial"] },
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
