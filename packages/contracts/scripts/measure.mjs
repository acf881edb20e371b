// node measure.mjs FILE: how long a capture takes to read in JavaScript, step by step.
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { createServer } from "vite";

const data = readFileSync(process.argv[2]);
const root = fileURLToPath(new URL("..", import.meta.url));
const server = await createServer({ root, configFile: false, logLevel: "error", server: { middlewareMode: true, ws: false } });
const { check, checkStructure, parseCapture } = await server.ssrLoadModule("/src/index.ts");

function best(step, times = 5) {
  const taken = Array.from({ length: times }, () => {
    const start = performance.now();
    step();
    return performance.now() - start;
  });
  return `${Math.min(...taken).toFixed(0).padStart(7)} ms`;
}

const document = JSON.parse(data);
console.log(`${(data.length / 1e6).toFixed(1)} MB, ${document.operations.length} operations`);
console.log("parseCapture ", best(() => parseCapture(data)));
console.log("JSON.parse   ", best(() => JSON.parse(data)));
console.log("structure    ", best(() => checkStructure(document)));
console.log("relations    ", best(() => check(document)));
await server.close();
