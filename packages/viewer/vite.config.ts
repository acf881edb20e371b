import { fileURLToPath } from "node:url";
import { defineConfig } from "vitest/config";
import { viteSingleFile } from "vite-plugin-singlefile";

/** The host puts a fresh nonce here for every response; without it the page's policy runs nothing. */
const NONCE = "__CSP_NONCE__";

export default defineConfig({
  root: fileURLToPath(new URL(".", import.meta.url)),
  plugins: [viteSingleFile({ removeViteModuleLoader: true })],
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  html: { cspNonce: NONCE },
  build: {
    target: "es2022",
    outDir: fileURLToPath(new URL("../../backend/tensorviz/page", import.meta.url)),
    emptyOutDir: true,
    modulePreload: false,
  },
  test: { include: ["test/**/*.test.{ts,tsx}"] },
});
