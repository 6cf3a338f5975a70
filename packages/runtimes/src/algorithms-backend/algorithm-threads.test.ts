import assert from "node:assert/strict";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { InferenceError, systemClock } from "@galatea/base";
import { ManualTimersClock } from "@galatea/base/core/manual-timers-fixture.ts";
import { AlgorithmThreads, type AlgorithmThreadsOptions, type LoadedAlgorithm } from "./algorithm-threads.ts";
import type { AlgorithmSource } from "./algorithm-models.ts";
import { linearLearnerArtifact, savedLinearModels } from "../algorithms/linear-learner/linear-models-fixture.ts";

const root = await mkdtemp(join(tmpdir(), "galatea-algorithms-"));
after(() => rm(root, { recursive: true }));
let folders = 0;

async function folderOf(files: Readonly<Record<string, string | Buffer>>): Promise<string> {
  const directory = join(root, String(++folders));
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(directory, name)), { recursive: true });
    await writeFile(join(directory, name), content);
  }
  return directory;
}

const linear = async (): Promise<AlgorithmSource> => ({
  algorithm: "linear_learner",
  directory: await folderOf({ "model_algo-1": linearLearnerArtifact(savedLinearModels.regressor) }),
  settings: {},
});

/** Returns a tokenizer whose regular expression takes twice the time for each additional letter. */
const endless = async (): Promise<AlgorithmSource> => ({
  algorithm: "sparkml",
  directory: await folderOf({
    "bundle.json": '{"format":"json"}',
    "root/node.json": JSON.stringify({
      name: "x",
      shape: { inputs: [{ name: "t", port: "input" }], outputs: [{ name: "w", port: "output" }] },
    }),
    "root/model.json": JSON.stringify({
      op: "regex_tokenizer",
      attributes: { regex: { string: "(a+)+b" }, match_gaps: {}, token_min_length: { int: 1 }, lowercase_text: {} },
    }),
  }),
  settings: {
    SAGEMAKER_SPARKML_SCHEMA: JSON.stringify({
      input: [{ name: "t", type: "string" }],
      output: { name: "w", type: "string", struct: "array" },
    }),
  },
});

const commandMsMax = 60_000;
const opened = (more: Partial<AlgorithmThreadsOptions>) =>
  new AlgorithmThreads({ commandMsMax, slowAfterMs: 100, spread: 1, most: 1, clock: systemClock, ...more });

const signal = new AbortController().signal;

async function invoke(model: LoadedAlgorithm, text: string): Promise<string> {
  const response = await model.invoke({
    bytes: Uint8Array.from(Buffer.from(text)),
    contentType: "text/csv",
    accept: "",
  });
  return `${response.status} ${Buffer.from(response.bytes).toString("utf8")}`;
}

test("two models in one thread respond, reject a row with missing columns, and the second still responds after the first is disposed", async () => {
  await using threads = opened({});
  const first = await threads.load(await linear(), signal);
  const second = await threads.load(await linear(), signal);
  assert.match(await invoke(first, "1,2,3,4"), /^200 \{"predictions": \[\{"score": /);
  assert.match(await invoke(first, "1,2"), /^400 unable to evaluate payload provided/);
  await first[Symbol.asyncDispose]();
  assert.match(await invoke(second, "1,2,3,4"), /^200 /);
  await second[Symbol.asyncDispose]();
});

test("a load of invalid files fails with an error that names the problem, and a loaded model still responds", async () => {
  await using threads = opened({});
  const good = await threads.load(await linear(), signal);
  const broken = { ...(await linear()), directory: await folderOf({ "model_algo-1": "nothing" }) };
  await assert.rejects(
    threads.load(broken, signal),
    new InferenceError("INVALID_ARG", "the archive is not a zip archive, or is truncated"),
  );
  const empty = { ...broken, directory: await folderOf({ other: "x" }) };
  await assert.rejects(threads.load(empty, signal), /the archive has no file 'model_algo-1'/);
  assert.match(await invoke(good, "1,2,3,4"), /^200 /);
});

test("a request that exceeds the time limit fails and ends its thread; the model's next request runs in a new thread", async () => {
  const clock = new ManualTimersClock(commandMsMax);
  await using threads = opened({ clock });
  const model = await threads.load(await endless(), signal);
  assert.equal(await invoke(model, "aab"), "200 aab");
  const refused = assert.rejects(
    invoke(model, "a".repeat(60)),
    /the model did not respond: the model took longer than/,
  );
  await setImmediate();
  clock.fireTimers();
  await refused;
  assert.equal(await invoke(model, "ab"), "200 ab");
});

test("while one model's request runs long, the other models of its thread are loaded again in a second thread and respond", async () => {
  await using threads = opened({ most: 2 });
  const slow = await threads.load(await endless(), signal);
  const siblings = [await threads.load(await linear(), signal), await threads.load(await linear(), signal)];
  assert.equal(threads.threadCount, 1);
  let hasEnded = false;
  const ended = invoke(slow, "a".repeat(60)).catch((error: unknown) => {
    hasEnded = true;
    return String(error);
  });
  for (let round = 0; round < 2; round++) {
    const responses = await Promise.all(siblings.map((model) => invoke(model, "1,2,3,4")));
    for (const response of responses) assert.match(response, /^200 /);
    assert.deepEqual([hasEnded, threads.threadCount], [false, 2]);
  }
  await threads[Symbol.asyncDispose]();
  assert.match(await ended, /the model did not respond: its container is stopping/);
});

test('disposing the threads rejects running and queued requests with "its container is stopping"', async () => {
  await using threads = opened({});
  const slow = await threads.load(await endless(), signal);
  const sibling = await threads.load(await linear(), signal);
  const both = Promise.allSettled([invoke(slow, "a".repeat(60)), invoke(sibling, "1,2,3,4")]);
  await threads[Symbol.asyncDispose]();
  for (const outcome of await both)
    assert.match(String(outcome.status === "rejected" && outcome.reason), /its container is stopping/);
  assert.equal(threads.threadCount, 0);
});

test("when every thread is slow, a queued request runs as soon as a thread is free", async () => {
  const clock = new ManualTimersClock(commandMsMax);
  await using threads = opened({ clock, slowAfterMs: 1 });
  const slow = await threads.load(await endless(), signal);
  const sibling = await threads.load(await linear(), signal);
  const refused = assert.rejects(invoke(slow, "a".repeat(60)), /the model did not respond: the model took longer than/);
  const pending = invoke(sibling, "1,2,3,4");
  await setImmediate();
  clock.fireTimers();
  await refused;
  assert.match(await pending, /^200 /);
  assert.equal(threads.threadCount, 1);
});
