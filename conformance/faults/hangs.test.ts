/** Model code that never returns, in every state of a model: unloads and stops complete, and leave no processes or files. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { assertEchoes, faultyRequest, errorOf, infer, load, unload } from "./http-client.ts";
import { faultyConfig, writeFaultyModel } from "./faulty-model.ts";
import { processesMarked } from "./processes.ts";
import { assertNothingLeft, openServing, type Serving } from "./serving.ts";
import { pidIn, until } from "./until.ts";

let serving: Serving;
let port: number;

before(async () => {
  serving = await openServing({
    flags: ["--model-control-mode=explicit", "--load-model=bystander", "--unload-timeout-secs=1"],
    write: ({ repository }) => writeFaultyModel(repository, "bystander"),
  });
  port = serving.server.httpPort;
});
after(() => serving[Symbol.asyncDispose]());

/** Writes its process id and waits forever, in the function that `at` names. */
function hanging(at: "complete" | "initialize" | "execute" | "finalize"): string {
  return `import os, time
import numpy as np
import triton_python_backend_utils as pb_utils

def reach(place):
    if place != "${at}": return
    directory = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    with open(os.path.join(directory, "pid"), "w") as file: file.write(str(os.getpid()))
    while True: time.sleep(60)

class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        reach("complete")
        return config

    def initialize(self, args):
        reach("initialize")

    def execute(self, requests):
        reach("execute")
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.zeros(1, np.float32))]) for _ in requests]

    def finalize(self):
        reach("finalize")
`;
}

const pidOf = (name: string) => pidIn(join(serving.repository, name, "pid"));
const isGone = (pid: number) => !processesMarked(serving.mark).some((one) => one.pid === pid);
const ended = (name: string) => `model '${name}' version 1 was ended while it executed: its unload waited for 1 s`;

test("a model that hangs in execute is unloaded in time; its running and waiting requests get an error; it loads again", async () => {
  await writeFaultyModel(serving.repository, "hung", { text: hanging("execute") });
  await load(port, "hung");
  const call = Array.from({ length: 12 }, () => infer(port, "hung", faultyRequest("any")));
  const pid = await pidOf("hung");
  assert.equal((await unload(port, "hung")).status, 200);
  for (const response of await Promise.all(call)) {
    assert.equal(errorOf(response, 503), ended("hung"));
  }
  await until("its worker has ended", () => isGone(pid));
  await writeFaultyModel(serving.repository, "hung");
  assert.equal((await load(port, "hung")).status, 200);
  await assertEchoes(port, "hung");
});

test("a model that was stopped (SIGSTOP) while it executed, and one while it was idle, are unloaded in time", async () => {
  await writeFaultyModel(serving.repository, "stopped", { text: hanging("execute") });
  await writeFaultyModel(serving.repository, "paused");
  await load(port, "stopped");
  const before = new Set(processesMarked(serving.mark).map((one) => one.pid));
  await load(port, "paused");
  await assertEchoes(port, "paused");
  const call = infer(port, "stopped", faultyRequest("any"));
  const busy = await pidOf("stopped");
  const idle = processesMarked(serving.mark).filter((one) => !before.has(one.pid));
  for (const pid of [busy, ...idle.map((one) => one.pid)]) process.kill(pid, "SIGSTOP");
  for (const name of ["stopped", "paused"]) await unload(port, name);
  assert.equal(errorOf(await call, 503), ended("stopped"));
  await until("their workers have ended", () => isGone(busy) && idle.every(({ pid }) => isGone(pid)));
});

test("an ensemble over a step that hangs is unloaded in time with its step, and its request gets an error", async () => {
  await writeFaultyModel(serving.repository, "step", { text: hanging("execute") });
  const graph = `platform: "ensemble" ${faultyConfig.slice(faultyConfig.indexOf("max_batch_size"), faultyConfig.indexOf("output"))}
output [{ name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] }]
ensemble_scheduling { step [{ model_name: "step" model_version: -1
  input_map { key: "DO" value: "DO" } input_map { key: "VALUE" value: "VALUE" } output_map { key: "OUT" value: "OUT" } }] }`;
  await writeFaultyModel(serving.repository, "graph", { text: "", config: graph });
  const loaded = await load(port, "graph");
  assert.equal(loaded.status, 200, loaded.body.toString());
  const call = infer(port, "graph", faultyRequest("any"));
  const pid = await pidOf("step");
  await unload(port, "graph");
  assert.equal(errorOf(await call, 503), ended("graph"));
  await unload(port, "step");
  await until("its worker has ended", () => isGone(pid));
});

test("a model that hangs in finalize is ended in time", async () => {
  await writeFaultyModel(serving.repository, "final", { text: hanging("finalize") });
  await load(port, "final");
  await unload(port, "final");
  const pid = await pidOf("final");
  await until("its worker has ended", () => isGone(pid));
});

for (const at of ["complete", "initialize"] as const) {
  test(`a load that hangs in ${at} ends in time once its model is unloaded, and the next load is not delayed`, async () => {
    const name = `hangs_in_${at}`;
    await writeFaultyModel(serving.repository, name, { text: hanging(at) });
    const loading = load(port, name);
    const pid = await pidOf(name);
    await unload(port, name);
    const response = await loading;
    assert.notEqual(response.status, 200);
    await until("its worker has ended", () => isGone(pid));
    await writeFaultyModel(serving.repository, name);
    assert.equal((await load(port, name)).status, 200);
    await assertEchoes(port, name);
    await assertEchoes(port, "bystander");
  });

  test(`a server that is stopped while a model hangs in ${at} exits, and leaves nothing behind`, async () => {
    await using ownServer = await openServing({ flags: ["--model-control-mode=explicit", "--exit-timeout-secs=1"] });
    await writeFaultyModel(ownServer.repository, "hangs", { text: hanging(at) });
    const loading = load(ownServer.server.httpPort, "hangs").catch(() => null);
    await pidIn(join(ownServer.repository, "hangs", "pid"));
    await ownServer.server.stop();
    await loading;
    await assertNothingLeft(ownServer);
  });
}

test("a server that is stopped while a model hangs in finalize exits with 1 after its exit timeout, and leaves nothing behind", async () => {
  await using serving = await openServing({
    flags: ["--model-control-mode=explicit", "--load-model=hangs", "--exit-timeout-secs=1"],
    write: ({ repository }) => writeFaultyModel(repository, "hangs", { text: hanging("finalize") }),
  });
  assert.equal(await serving.server.stop(), 1);
  await assertNothingLeft(serving);
});
