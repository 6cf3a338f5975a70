/** ONNX models over HTTP that end, block or fill their process: the server and all other models continue. */
import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import type { OnnxModel } from "@galatea/server/onnx-file";
import { deadlyInput, dividing, dividingAtLoad, endless, harmless, writeModel } from "./onnx-models.ts";
import { sendRequest, errorOf, infer, load, type HttpResponse } from "./http-client.ts";
import { descendantsOf } from "./processes.ts";
import { assertNoProcesses, openServing, type Serving, type ServingOptions } from "./serving.ts";

type Models = Readonly<Record<string, Partial<OnnxModel>>>;

async function writeModels(repository: string, models: Models, config = ""): Promise<void> {
  for (const [name, model] of Object.entries(models)) {
    await mkdir(join(repository, name, "1"), { recursive: true });
    // A fixed size: with only variable dimensions, the model would be batched.
    const fixed = { ...model, inputs: model.inputs!.map((each) => ({ ...each, dims: [2] })) };
    await writeModel(join(repository, name, "1", "model.onnx"), { ...fixed, graphName: name });
    await writeFile(join(repository, name, "config.pbtxt"), `backend: "onnxruntime"\n${config}`);
  }
}

function open(models: Models, options: ServingOptions & { config?: string } = {}): Promise<Serving> {
  return openServing({ ...options, write: ({ repository }) => writeModels(repository, models, options.config) });
}

const tensor = (name: string, datatype: string, data: readonly number[]) => ({
  name,
  datatype,
  shape: [data.length],
  data,
});
const division = JSON.stringify({
  inputs: [tensor("x", "INT32", [...deadlyInput.x, 1]), tensor("by", "INT32", [...deadlyInput.by, 1])],
});
const negation = JSON.stringify({ inputs: [tensor("x", "FP32", [1, 2])] });

function assertNegated(response: HttpResponse): void {
  assert.equal(response.status, 200, response.body.toString());
  const { outputs } = JSON.parse(response.body.toString()) as { outputs: { data: number[] }[] };
  assert.deepEqual(outputs[0]?.data, [-1, -2]);
}

const runnersOf = (serving: Serving) =>
  descendantsOf(serving.server.pid).filter(({ command, state }) => state !== "Z" && command.includes("runner-worker"));

test("a request that crashes the process gets an error, and the server and its other models continue", async () => {
  await using serving = await open({ bad: dividing, good: harmless });
  const { httpPort } = serving.server;
  assert.equal(
    errorOf(await infer(httpPort, "bad", division), 500),
    "model 'bad' has crashed its process (signal SIGFPE)",
  );
  for (let requestCount = 0; requestCount < 3; requestCount += 1)
    assertNegated(await infer(httpPort, "good", negation));
  // A repeated request of the client: its model runs isolated, and then is not run any more.
  for (let requestCount = 0; requestCount < 3; requestCount += 1) errorOf(await infer(httpPort, "bad", division), 500);
  assert.match(
    errorOf(await infer(httpPort, "bad", division), 503),
    /^model 'bad' is not run: it has crashed its process/,
  );
  assertNegated(await infer(httpPort, "good", negation));
  assert.equal((await sendRequest(httpPort, { path: "/v2/health/live" })).status, 200);
});

test("a file that crashes the process that loads it is rejected with the model's name", async () => {
  await using serving = await open(
    { deadly: dividingAtLoad, good: harmless },
    { flags: ["--model-control-mode=explicit", "--load-model=good"] },
  );
  const { httpPort } = serving.server;
  const response = await load(httpPort, "deadly");
  assert.match(errorOf(response, 400), /model 'deadly' has crashed its process \(signal SIGFPE\)/);
  assertNegated(await infer(httpPort, "good", negation));
});

test("endless loops in all instances of a model do not block another model, and end with their clients", async () => {
  await using serving = await open(
    { loops: endless, good: harmless },
    { config: "instance_group { count: 4 kind: KIND_CPU }" },
  );
  const { httpPort } = serving.server;
  const controller = new AbortController();
  const loops = [0, 1, 2, 3].map(() => infer(httpPort, "loops", negation, { signal: controller.signal }));
  const removed = Promise.allSettled(loops);
  for (let requestCount = 0; requestCount < 50; requestCount += 1)
    assertNegated(await infer(httpPort, "good", negation));
  controller.abort();
  await removed;
  assertNegated(await infer(httpPort, "good", negation));
});

test("a run that passes the deadline is ended", async () => {
  await using serving = await open({ loops: endless, good: harmless }, { flags: ["--onnx-run-deadline-secs=1"] });
  const { httpPort } = serving.server;
  assert.equal(
    errorOf(await infer(httpPort, "loops", negation), 500),
    "the run of model 'loops' did not end within 1000 ms and was ended",
  );
  assertNegated(await infer(httpPort, "good", negation));
});

test("kill -9 of the server leaves no process that runs models", async () => {
  await using serving = await open({ good: harmless });
  assertNegated(await infer(serving.server.httpPort, "good", negation));
  assert.equal(runnersOf(serving).length, 1);
  process.kill(serving.server.pid, "SIGKILL");
  await assertNoProcesses(serving);
});
