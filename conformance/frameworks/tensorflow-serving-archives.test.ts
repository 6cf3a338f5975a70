import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ScriptServer } from "./script-server.ts";
import { ServingArchives } from "./serving-fixture.ts";

const json = { "Content-Type": "application/json" };
const attributes = (text: string) => ({ ...json, "X-Amzn-SageMaker-Custom-Attributes": text });
const numbers = '{"instances": [1.0, 2.0]}';
let archives: ServingArchives;

before(async () => {
  archives = await ServingArchives.make();
});
after(() => archives[Symbol.asyncDispose]());

type Files = Readonly<Record<string, string | Buffer>>;

/** Starts a single-model container with an archive. */
function open(files: Files, env: Readonly<Record<string, string>> = {}): Promise<ScriptServer> {
  return ScriptServer.open("tensorflow-serving", { SAGEMAKER_MULTI_MODEL: "false", ...env }, files);
}

test("the default of several models in an archive is the first one or SAGEMAKER_TFS_DEFAULT_MODEL_NAME, and attributes select others", async () => {
  const files = {
    ...(await archives.filesUnder("export/Servo", "other")),
    ...(await archives.filesUnder(".", "lines")),
    "code/requirements.txt": "no-package-of-this-name\n",
  };
  await using server = await open(files, { SAGEMAKER_TFS_DEFAULT_MODEL_NAME: "line" });
  const request = async (headers: Readonly<Record<string, string>>, body = numbers) =>
    JSON.parse((await server.call("POST", "/invocations", body, headers)).body) as unknown;
  assert.deepEqual(await request(json), { predictions: [2.1, 2.2] });
  assert.deepEqual(await request(attributes("tfs-model-version=1")), { predictions: [2.5, 3] });
  const rows = '{"instances": [[1, 2, 3]]}';
  assert.deepEqual(await request(attributes("tfs-model-name=Servo, tfs-model-version=2"), rows), {
    predictions: [[7, 12, 17]],
  });
  assert.deepEqual(await request(attributes("tfs-model-name=model")), {
    error: "Servable not found for request: Latest(model)",
  });
  assert.equal((await server.call("GET", "/ping")).status, 200);
});

test("versions at an archive's root belong to the model `model`, and with batching concurrent requests run together", async () => {
  const files = {
    ...(await archives.filesUnder("1", "lines/line/1")),
    ...(await archives.filesUnder("2", "pair/1")),
    ...(await archives.filesUnder("3", "together/1")),
  };
  // A batch runs when it is full, so four requests are sent at a time.
  const env = {
    SAGEMAKER_TFS_ENABLE_BATCHING: "true",
    SAGEMAKER_TFS_MAX_BATCH_SIZE: "4",
    SAGEMAKER_TFS_BATCH_TIMEOUT_MICROS: "30000000",
    SAGEMAKER_TFS_MAX_ENQUEUED_BATCHES: "100",
  };
  await using server = await open(files, env);
  const request = async (version: number, bodies: readonly string[]) => {
    const headers = attributes(`tfs-model-name=model,tfs-model-version=${version}`);
    const replies = bodies.map((body) => server.call("POST", "/invocations", body, headers));
    return (await Promise.all(replies)).map(({ body }) => JSON.parse(body) as Record<string, unknown>);
  };
  const single = [1, 2, 3, 4].map((x) => `{"instances": [${x}]}`);
  assert.deepEqual(
    await request(3, single),
    [1, 2, 3, 4].map((x) => ({ predictions: [{ x, rows: 4 }] })),
  );
  const [rows, wrong, alone, many] = await request(1, [
    '{"instances": [1, 2]}',
    '{"instances": ["x"]}',
    '{"signature_name": "three", "inputs": [[2, 4, 6]]}',
    '{"instances": [1, 2, 3, 4, 5]}',
  ]);
  assert.deepEqual([rows, alone], [{ predictions: [2.5, 3] }, { outputs: [[3, 4, 5]] }]);
  assert.match(JSON.stringify(wrong), /is not of expected type: float/);
  assert.deepEqual(many, { error: "Task size 5 is larger than maximum input batch size 4" });
  const pair = (a: number) => `{"inputs": {"a": [[${a}, 2]], "b": [3], "c": [[true]]}}`;
  assert.deepEqual(
    await request(2, [1, 2, 3, 4].map(pair)),
    [1, 2, 3, 4].map((a) => ({ outputs: { not: [[false]], sum: [a + 5], twice: [6], wide: [3 * 2 ** 40] } })),
  );
});

test("archives without a valid SavedModel fail their load with the reason, and other models keep responding", async () => {
  await using server = await ScriptServer.open("tensorflow-serving");
  const line = await archives.filesUnder("1", "lines/line/1");
  const saved = line["1/saved_model.pb"]!;
  assert.equal((await server.load("good", line)).status, 200);
  const rows: readonly (readonly [Files, RegExp])[] = [
    [
      { "readme.txt": "nothing" },
      /no SavedModel bundles found! The archive has to hold <model>\/<version>\/saved_model\.pb/,
    ],
    [{ "saved_model.pb": saved }, /no SavedModel bundles found!/],
    [{ "line/latest/saved_model.pb": saved }, /no SavedModel bundles found!/],
    [{ ...line, "2/readme.txt": "no model" }, /failed to load version 2 of model 'model': Could not find SavedModel/],
    [{ ...line, "001/saved_model.pb": saved }, /has version 1 twice/],
    [{ "a/m/1/saved_model.pb": saved, "b/m/1/saved_model.pb": saved }, /two models of the name 'm'/],
    [{ "m/99999999999999999999/saved_model.pb": saved }, /not a valid version: it is larger than/],
    [{ "m/1/saved_model.pb": saved.subarray(0, saved.length - 7) }, /failed to load version 1 of model 'm'/],
    [{ "m/1/saved_model.pb": "text" }, /failed to load version 1 of model 'm'/],
    [{ "m/1/saved_model.pb": saved }, /failed to load version 1 of model 'm'.*variables/],
    [
      { ...line, "1/variables/variables.index": Buffer.from(line["1/variables/variables.index"]!).fill(0xff) },
      /failed to load version 1 of model 'model'/,
    ],
  ];
  for (const [index, [files, error]] of rows.entries()) {
    const reply = await server.load(`bad${index}`, files);
    assert.equal(reply.status, 400, `${index}: ${reply.body}`);
    assert.match(reply.body, error, String(index));
  }
  const flipped = Array.from({ length: 8 }, (_, at) => {
    const copy = Buffer.from(saved);
    copy[Math.floor(((at + 0.5) * copy.length) / 8)]! ^= 0x55;
    return copy;
  });
  for (const [index, damaged] of flipped.entries())
    await server.load(`flipped${index}`, { ...line, "1/saved_model.pb": damaged });
  assert.equal((await server.invoke("good", numbers, json)).status, 200);
  const response = JSON.parse((await server.invoke("good", numbers, json)).body) as unknown;
  assert.deepEqual(response, { predictions: [2.5, 3] });
  const unloaded = await server.call("DELETE", "/models/good");
  assert.equal(unloaded.status, 200, unloaded.body);
  assert.equal((await server.invoke("good", numbers, json)).status, 404);
});
