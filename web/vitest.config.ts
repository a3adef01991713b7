import { defineConfig } from "vitest/config";

export default defineConfig({
  test: { environment: "jsdom", include: ["src/**/*.test.ts"], pool: "threads", maxWorkers: 1, isolate: false },
});
