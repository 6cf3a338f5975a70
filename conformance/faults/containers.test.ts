/** The container contract with invalid or hostile calls: each call gets its response, and loaded models continue. */
import assert from "node:assert/strict";
import { cp, mkdir, readdir, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { sendRequest, faultyRequest, textOf, type HttpResponse } from "./http-client.ts";
import { writeFaultyModel } from "./faulty-model.ts";
import { descendantsOf } from "./processes.ts";
import { openServing, type Serving } from "./serving.ts";
import { pidIn, until } from "./until.ts";

const flags = ["--model-control-mode=explicit"];

/** Writes an archive as a platform unpacks it, and returns the path that identifies it in calls. */
async function unpackInto(serving: Serving, hash: string, text: string | null = null): Promise<string> {
  await writeFaultyModel(join(serving.mlRoot, "models", hash, "model"), "m", { text });
  return `/opt/ml/models/${hash}/model`;
}

const load = (serving: Serving, id: string, url: string) =>
  sendRequest(serving.server.sagemakerPort, { path: "/models", body: JSON.stringify({ model_name: id, url }) });
const remove = (serving: Serving, id: string) =>
  sendRequest(serving.server.sagemakerPort, { method: "DELETE", path: `/models/${id}` });
const call = (serving: Serving, id: string, does: string) =>
  sendRequest(serving.server.sagemakerPort, {
    path: `/models/${id}/invoke`,
    body: faultyRequest(does),
    headers: { "content-type": "application/json" },
  });
const said = (response: HttpResponse) => `${response.status} ${response.body.toString()}`;
const workers = (serving: Serving) => descendantsOf(serving.server.pid).map(({ pid }) => pid);

describe("without a memory limit", () => {
  let serving: Serving;
  before(async () => {
    serving = await openServing({ flags });
    assert.equal(said(await load(serving, "good", await unpackInto(serving, "good"))), "200 ");
  });
  after(async () => {
    await serving[Symbol.asyncDispose]();
  });
  const assertGoodResponses = async () => assert.equal(textOf(await call(serving, "good", "echo")), "");

  test("paths that leave the models' directory load nothing", async () => {
    const secret = join(serving.directory, "secret");
    await writeFaultyModel(secret, "m");
    const models = join(serving.mlRoot, "models");
    await symlink(secret, join(models, "linked"));
    await mkdir(join(models, "inner"));
    await symlink(secret, join(models, "inner", "model"));
    await cp(join(models, "good"), join(models, "links"), { recursive: true });
    await symlink(secret, join(models, "links", "model", "sub"));
    const before = workers(serving);
    for (const url of [
      "/opt/ml/models/../../secret/model",
      "/opt/ml/models/%2e%2e/model",
      "/opt/ml/models/../models/good/model",
      "/opt/ml/models/good/model/../../links/model",
      "/opt/ml/models/good",
      "/opt/ml/models//model",
      "/opt/ml/models/linked/model",
      "/opt/ml/models/inner/model",
      "/opt/ml/models/links/model/sub",
      "/opt/ml/models/nobody/model",
      "/proc/self/root",
      "/dev/shm",
      secret,
      "",
      "x".repeat(10_000),
    ]) {
      const response = await load(serving, "escaped", url);
      assert.equal(response.status, 400, `${url.slice(0, 100)}: ${said(response)}`);
    }
    assert.deepEqual(workers(serving), before);
    await assertGoodResponses();
  });

  test("invalid ids and invalid load bodies are rejected", async () => {
    const url = await unpackInto(serving, "named");
    for (const id of ["../good", "a/b", "a b", "", "x".repeat(300), "ä"]) {
      const response = await load(serving, id, url);
      assert.equal(response.status, 400, `${id}: ${said(response)}`);
    }
    for (const body of ["", "{", "[]", "{}", '{"model_name":7,"url":8}', "[".repeat(100_000), "x".repeat(100_000)]) {
      const response = await sendRequest(serving.server.sagemakerPort, { path: "/models", body });
      assert.ok(response.status === 400 || response.status === 413, `${body.slice(0, 50)}: ${said(response)}`);
    }
    await assertGoodResponses();
  });

  test("a second load is 409, a call to an unloaded model 404, and neither affects the loaded models", async () => {
    const url = await unpackInto(serving, "twice");
    assert.equal((await load(serving, "twice", url)).status, 200);
    assert.equal((await load(serving, "twice", url)).status, 409);
    assert.equal((await remove(serving, "nobody")).status, 404);
    assert.equal((await call(serving, "nobody", "echo")).status, 404);
    assert.equal((await remove(serving, "twice")).status, 200);
    assert.equal((await call(serving, "twice", "echo")).status, 404);
    await assertGoodResponses();
  });

  test("two loads of one model at once start it once", async () => {
    const url = await unpackInto(serving, "race");
    const before = workers(serving).length;
    const statuses = (await Promise.all([1, 2, 3, 4].map(() => load(serving, "race", url)))).map(
      ({ status }) => status,
    );
    assert.deepEqual(
      statuses.toSorted((a, b) => a - b),
      [200, 409, 409, 409],
    );
    assert.equal(workers(serving).length, before + 1);
    await remove(serving, "race");
    await until("its worker has ended", () => workers(serving).length === before);
  });

  test("an unload waits for the model's running request", async () => {
    const url = await unpackInto(serving, "busy");
    await load(serving, "busy", url);
    const pending = call(serving, "busy", "hold it");
    const marker = join(serving.mlRoot, "models", "busy", "model", "m", "it");
    await pidIn(`${marker}.running`);
    const removed = remove(serving, "busy");
    await until("the model is being unloaded", async () => (await call(serving, "busy", "echo")).status === 404);
    await writeFile(`${marker}.go`, "");
    assert.equal((await pending).status, 200);
    assert.equal((await removed).status, 200);
  });

  test("a model whose archive is deleted after its load keeps responding", async () => {
    const url = await unpackInto(serving, "gone");
    await load(serving, "gone", url);
    await rm(join(serving.mlRoot, "models", "gone"), { recursive: true });
    assert.equal(textOf(await call(serving, "gone", "echo")), "");
    assert.equal((await remove(serving, "gone")).status, 200);
  });

  test("a model that says it is out of memory is 507, and stays loaded", async () => {
    const url = await unpackInto(serving, "greedy");
    await load(serving, "greedy", url);
    const response = await call(serving, "greedy", "out_of_memory");
    assert.equal(response.status, 507, said(response));
    assert.equal(textOf(await call(serving, "greedy", "echo")), "");
    await remove(serving, "greedy");
  });
});

describe("with a memory budget", () => {
  let serving: Serving;
  before(async () => {
    serving = await openServing({ flags: [...flags, `--memory-budget-bytes=${64 * 2 ** 20}`] });
  });
  after(async () => {
    await serving[Symbol.asyncDispose]();
  });
  /** Allocates a number of mebibytes in its `initialize`. */
  const heavy = (mebibytes: number) => `import triton_python_backend_utils as pb_utils
class TritonPythonModel:
  def initialize(self, args):
    self.held = bytearray(${mebibytes} << 20)
    for i in range(0, len(self.held), 4096): self.held[i] = 1
  def execute(self, requests):
    return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", pb_utils.get_input_tensor_by_name(r, "VALUE").as_numpy())]) for r in requests]
`;

  test("a model over the budget is 507 and leaves no process; it loads after an unload", async () => {
    for (const hash of ["a", "b", "c"]) await unpackInto(serving, hash, heavy(24));
    const url = (hash: string) => `/opt/ml/models/${hash}/model`;
    assert.equal(said(await load(serving, "a", url("a"))), "200 ");
    assert.equal(said(await load(serving, "b", url("b"))), "200 ");
    const before = workers(serving);
    const refused = await load(serving, "c", url("c"));
    assert.equal(refused.status, 507, said(refused));
    assert.match(refused.body.toString(), /Out of memory: /);
    await until("all of its processes have ended", () => workers(serving).join() === before.join());
    assert.equal((await call(serving, "a", "echo")).status, 200);
    assert.equal((await remove(serving, "a")).status, 200);
    assert.equal(said(await load(serving, "c", url("c"))), "200 ");
    assert.equal((await call(serving, "c", "echo")).status, 200);
  });

  test("a model larger than the whole budget is 507 each time", async () => {
    const url = await unpackInto(serving, "huge", heavy(200));
    for (const _ of [1, 2]) assert.equal((await load(serving, "huge", url)).status, 507);
    const response = await sendRequest(serving.server.sagemakerPort, { path: "/models" });
    const { models } = JSON.parse(response.body.toString()) as { models: { modelName: string }[] };
    assert.deepEqual(models.map(({ modelName }) => modelName).toSorted(), ["b", "c"]);
    assert.deepEqual(await readdir(serving.temporary), []);
  });
});
