/**
 * Reads a model file as a load does, and prints the growth of the process in bytes without the file: node read-model.ts
 * FILE TYPE
 */
import { open } from "node:fs/promises";
import { compactForest } from "../../packages/runtimes/src/trees/evaluation/compact-forest.ts";
import type { ModelType } from "../../packages/runtimes/src/trees/fil-parameters.ts";
import { readForest } from "../../packages/runtimes/src/trees/read-forest.ts";

const [path = "", type = ""] = process.argv.slice(2);
await using file = await open(path);
const bytes = new Uint8Array((await file.stat()).size);
await file.read(bytes, 0, bytes.length, 0);
const before = process.resourceUsage().maxRSS;
compactForest(readForest(bytes, type as ModelType, { allowUnknownField: false }), { workspaceCount: 1 });
console.log(1024 * (process.resourceUsage().maxRSS - before));
