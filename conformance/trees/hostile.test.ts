/** Truncated and bit-flipped model files are rejected with an error or load as a model, within a time limit. */
import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { InferenceError } from "@galatea/base";
import { compactForest } from "../../packages/runtimes/src/trees/evaluation/compact-forest.ts";
import { type ModelType, modelTypes } from "../../packages/runtimes/src/trees/fil-parameters.ts";
import { readForest } from "../../packages/runtimes/src/trees/read-forest.ts";
import { generateModels, type GeneratedModels } from "./generated-models.ts";
import { threadCpuMs } from "../../packages/base/src/core/cpu-time-fixture.ts";

/** A whole file of these models is read in a few milliseconds. */
const readMsMax = 1000;
const rssKibibytesMax = 700 * 1024;

let models: GeneratedModels;
/** The smallest files of each model type. */
let files: readonly { readonly name: string; readonly type: ModelType; readonly bytes: Uint8Array }[];

before(async () => {
  models = await generateModels();
  const found = [];
  for (const [type, fileName] of Object.entries(modelTypes) as [ModelType, string][]) {
    const ofType = [];
    for (const name of await readdir(models.repository)) {
      const bytes = await readFile(join(models.repository, name, "1", fileName)).catch(() => null);
      if (bytes !== null) ofType.push({ name, type, bytes: Uint8Array.from(bytes) });
    }
    const bySize = ofType.toSorted((a, b) => a.bytes.length - b.bytes.length);
    const categories = bySize.filter(({ name }) => name.includes("categories"));
    const linear = bySize.filter(({ name }) => name.includes("linear"));
    found.push(...bySize.slice(0, 3), ...categories.slice(0, 2), ...linear.slice(0, 2));
  }
  files = found;
});

after(() => models?.[Symbol.asyncDispose]());

/** Returns the error message for a file; null if it is a valid model. */
function refusalOf(bytes: Uint8Array, type: ModelType): string | null {
  const startMs = threadCpuMs();
  try {
    compactForest(readForest(bytes, type, { allowUnknownField: false }), { workspaceCount: 1 });
    return null;
  } catch (error) {
    if (!(error instanceof InferenceError)) throw error;
    assert.ok(["INVALID_ARG", "UNSUPPORTED"].includes(error.code), error.code);
    assert.ok(error.message.length > 10 && error.message.length < 500, error.message);
    return error.message;
  } finally {
    const tookMs = threadCpuMs() - startMs;
    assert.ok(tookMs < readMsMax, `it took ${tookMs} ms`);
  }
}

test("a truncated model file is rejected, whatever its length", () => {
  assert.ok(files.length >= 15, `${files.length} files`);
  for (const { name, type, bytes } of files) {
    assert.equal(refusalOf(bytes, type), null, name);
    // LightGBM's text continues after its trees with data for training, and JSON may end with a line feed.
    const endsAt = type === "lightgbm" ? Buffer.from(bytes).indexOf("end of trees") : bytes.length - 1;
    for (let cut = 0; cut < 200; cut += 1) {
      const length = Math.floor((cut / 200) * endsAt);
      assert.notEqual(refusalOf(bytes.slice(0, length), type), null, `${name} cut at ${length}`);
    }
  }
});

test("a bit-flipped model file is rejected or loads as another model", () => {
  let random = 1;
  const next = (below: number) => {
    random = (random * 48271) % 2147483647;
    return random % below;
  };
  let refusedCount = 0;
  let triedCount = 0;
  for (const { type, bytes } of files) {
    for (let flip = 0; flip < 400; flip += 1) {
      const changed = bytes.slice();
      // Half of the flips are near the beginning, where counts are.
      const position = next(flip % 2 === 0 ? bytes.length : Math.min(bytes.length, 600));
      changed[position] = (changed[position] as number) ^ (1 << next(8));
      triedCount += 1;
      if (refusalOf(changed, type) !== null) refusedCount += 1;
    }
  }
  assert.ok(refusedCount > triedCount / 10, `${refusedCount} of ${triedCount} were refused`);
});

test("a file of random bytes is rejected", () => {
  for (const type of Object.keys(modelTypes) as ModelType[]) {
    for (let seed = 0; seed < 100; seed += 1) {
      const noise = Uint8Array.from(
        { length: 50 * seed },
        (_, position) => ((position + 1) * (seed * 2 + 7919) * 2654435761) >>> 13,
      );
      assert.notEqual(refusalOf(noise, type), null);
    }
  }
});

test("the process stays below its memory limit for all invalid files", () => {
  const { maxRSS } = process.resourceUsage();
  assert.ok(maxRSS < rssKibibytesMax, `${maxRSS} KiB`);
});
