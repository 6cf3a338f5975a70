/** kill -9 of each kind of process of `galatea serve`, including the server itself, during requests. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readdir, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { startGalatea } from "../environments/index.ts";
import { assertEchoes, faultyRequest, errorOf, infer, load, textOf } from "./http-client.ts";
import { writeFaultyModel } from "./faulty-model.ts";
import { descendantsOf, openFiles, processesMarked } from "./processes.ts";
import { assertNothingLeft, compileCache, openServing, type Serving } from "./serving.ts";
import { pidIn, until } from "./until.ts";

const models = ["held", "bystander"] as const;
const startFlags = ["--model-control-mode=explicit", ...models.map((name) => `--load-model=${name}`)];

function open(more = "", flags: readonly string[] = []): Promise<Serving> {
  return openServing({
    flags: [...startFlags, ...flags],
    write: async ({ repository }) => {
      for (const name of models) await writeFaultyModel(repository, name, { more });
    },
  });
}

/** A request that blocks its model; `release` unblocks it. */
async function hold(serving: Serving, model: string, name: string) {
  const response = infer(serving.server.httpPort, model, faultyRequest(`hold ${name}`));
  // A rejection is checked later, and must not fail the test now.
  response.catch(() => {});
  const marker = join(serving.repository, model, name);
  const pid = await pidIn(`${marker}.running`);
  return { answer: response, pid, release: () => writeFile(`${marker}.go`, "") };
}

const zygoteOf = (serving: Serving) => {
  const workers = descendantsOf(serving.server.pid);
  // A worker's standard output is its own pipe; the zygote has no memory file of tensors open.
  const zygote = workers.find(({ pid }) => !openFiles(pid).some((path) => path.startsWith("/memfd:")));
  assert.ok(zygote, "there is a zygote");
  return zygote.pid;
};

test("kill -9 of a worker fails its executing requests, with the signal, and no others", async () => {
  await using serving = await open("instance_group { count: 2 kind: KIND_CPU }");
  const { httpPort } = serving.server;
  const first = await hold(serving, "held", "a");
  const second = await hold(serving, "held", "b");
  assert.notEqual(first.pid, second.pid);
  process.kill(first.pid, "SIGKILL");
  assert.match(errorOf(await first.answer, 500), /^Stub process 'held_0_\d' is not healthy\. \(signal SIGKILL\)$/);
  await assertEchoes(httpPort, "bystander");
  await second.release();
  assert.equal((await second.answer).status, 200);
  const pids = new Set<string>();
  await until("both instances respond again", async () => {
    pids.add(textOf(await infer(httpPort, "held", faultyRequest("pid"))));
    return pids.size === 2;
  });
  assert.ok(!pids.has(String(first.pid)));
});

test("workers that are killed one after another fail their executing requests; waiting ones are executed by their successors", async () => {
  await using serving = await open();
  const { httpPort } = serving.server;
  const words = ["a", "b", "c", "d"];
  const pending = new Map<string, ReturnType<typeof infer>>();
  const waiting = [];
  for (const word of words) {
    const response = infer(httpPort, "held", faultyRequest(`hold ${word}`));
    // The process ids are read again after the worker was killed.
    response.catch(() => {});
    pending.set(join(serving.repository, "held", `${word}.running`), response);
    for (let count = 0; count < 8; count++) waiting.push(infer(httpPort, "held", faultyRequest("pid")));
    if (word === "a") await pidIn(join(serving.repository, "held", "a.running"));
  }
  // Requests of several connections may arrive in any order.
  while (pending.size > 0) {
    const path = await until("one of the requests is running", () =>
      [...pending.keys()].find((each) => existsSync(each)),
    );
    process.kill(await pidIn(path), "SIGKILL");
    assert.match(errorOf(await pending.get(path)!, 500), /^Stub process 'held_0' is not healthy\. \(signal SIGKILL\)$/);
    pending.delete(path);
  }
  const pids = (await Promise.all(waiting)).map(textOf);
  assert.equal(pids.length, 8 * words.length);
  assert.ok(new Set(pids).size <= words.length);
});

test("requests that waited at a killed worker, and new ones, go to the remaining instance", async () => {
  const text = `import os, time
import numpy as np
import triton_python_backend_utils as pb_utils

class TritonPythonModel:
    def initialize(self, args):
        self.first = os.path.join(args["model_repository"], "second-start")
        if args["model_instance_name"].endswith("_0"):
            while os.path.exists(self.first): time.sleep(0.01)

    def execute(self, requests):
        directory = os.path.dirname(self.first)
        words = [pb_utils.get_input_tensor_by_name(r, "DO").as_numpy().reshape(-1)[0].decode().split() for r in requests]
        if words[0][0] == "hold":
            with open(os.path.join(directory, words[0][1] + ".running"), "w") as file: file.write(str(os.getpid()))
            while not os.path.exists(os.path.join(directory, words[0][1] + ".go")): time.sleep(0.005)
        text = np.array([str(os.getpid())], object)
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.zeros(1, np.float32)), pb_utils.Tensor("TEXT", text)]) for _ in requests]
`;
  await using serving = await open();
  const { httpPort } = serving.server;
  const more = "instance_group { count: 2 kind: KIND_CPU }";
  await writeFaultyModel(serving.repository, "pair", { text, more });
  assert.equal((await load(httpPort, "pair")).status, 200);
  const first = await hold(serving, "pair", "a");
  const second = await hold(serving, "pair", "b");
  const waiting = Array.from({ length: 12 }, () => infer(httpPort, "pair", faultyRequest("pid")));
  // Either of the two may be the first instance, which is not restarted.
  await writeFile(join(serving.repository, "pair", "second-start"), "");
  process.kill(first.pid, "SIGKILL");
  assert.match(errorOf(await first.answer, 500), /signal SIGKILL/);
  await second.release();
  assert.equal((await second.answer).status, 200);
  const meanwhile = Array.from({ length: 4 }, () => infer(httpPort, "pair", faultyRequest("pid")));
  for (const response of await Promise.all([...waiting, ...meanwhile])) assert.equal(response.status, 200);
  await rm(join(serving.repository, "pair", "second-start"));
});

test("kill -9 of a worker in an ensemble fails the ensemble's request with the step's reason", async () => {
  await using serving = await open();
  const { httpPort } = serving.server;
  const io = (kind: string) => `${kind} [
  { name: "DO" data_type: TYPE_STRING dims: [ 1 ] }, { name: "VALUE" data_type: TYPE_FP32 dims: [ -1 ] } ]`;
  const config = `platform: "ensemble"
${io("input")}
output [ { name: "TEXT" data_type: TYPE_STRING dims: [ 1 ] }, { name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] } ]
ensemble_scheduling { step [
  { model_name: "bystander" model_version: -1 input_map { key: "DO" value: "DO" } input_map { key: "VALUE" value: "VALUE" }
    output_map { key: "OUT" value: "between" } },
  { model_name: "held" model_version: -1 input_map { key: "DO" value: "DO" } input_map { key: "VALUE" value: "between" }
    output_map { key: "OUT" value: "OUT" } output_map { key: "TEXT" value: "TEXT" } } ] }
`;
  await writeFaultyModel(serving.repository, "chain", { config });
  const loaded = await load(httpPort, "chain");
  assert.equal(loaded.status, 200, loaded.body.toString());
  await assertEchoes(httpPort, "chain");
  await writeFile(join(serving.repository, "bystander", "x.go"), "");
  const response = infer(httpPort, "chain", faultyRequest("hold x"));
  process.kill(await pidIn(join(serving.repository, "held", "x.running")), "SIGKILL");
  assert.match(errorOf(await response, 500), /Stub process 'held_0' is not healthy\. \(signal SIGKILL\)/);
  await until(
    "the ensemble responds again",
    async () => (await infer(httpPort, "chain", faultyRequest("echo"))).status === 200,
  );
});

test("kill -9 of the zygote affects no loaded model, and the next load starts another zygote", async () => {
  await using serving = await open();
  const { httpPort } = serving.server;
  const pending = await hold(serving, "held", "a");
  const zygote = zygoteOf(serving);
  process.kill(zygote, "SIGKILL");
  await until("the process has ended", () => !descendantsOf(serving.server.pid).some(({ pid }) => pid === zygote));
  await assertEchoes(httpPort, "bystander");
  await pending.release();
  assert.equal((await pending.answer).status, 200);
  await writeFaultyModel(serving.repository, "another");
  assert.equal((await load(httpPort, "another")).status, 200);
  await assertEchoes(httpPort, "another");
  assert.notEqual(zygoteOf(serving), zygote);
});

test("loads continue while a zygote with more preloaded modules replaces one that is killed", async () => {
  await using serving = await open();
  const { httpPort } = serving.server;
  const text = "import wave\nclass TritonPythonModel:\n  def execute(self, requests): return []\n";
  await writeFaultyModel(serving.repository, "learns", { text });
  assert.equal((await load(httpPort, "learns")).status, 200);
  const zygote = zygoteOf(serving);
  process.kill(zygote, "SIGKILL");
  await until("the process has ended", () => !descendantsOf(serving.server.pid).some(({ pid }) => pid === zygote));
  await assertEchoes(httpPort, "bystander");
  for (const name of ["first", "second", "third"]) {
    await writeFaultyModel(serving.repository, name);
    const response = await load(httpPort, name);
    assert.equal(response.status, 200, response.body.toString());
    await assertEchoes(httpPort, name);
  }
});

test("a worker that dies after its zygote is restarted", async () => {
  await using serving = await open();
  const { httpPort } = serving.server;
  process.kill(zygoteOf(serving), "SIGKILL");
  const pending = await hold(serving, "held", "a");
  process.kill(pending.pid, "SIGKILL");
  errorOf(await pending.answer, 500);
  await until(
    "the model responds again",
    async () => (await infer(httpPort, "held", faultyRequest("echo"))).status === 200,
  );
});

test("kill -9 of the server ends every process below it, hung models and orphans among them, and leaves no file", async () => {
  await using serving = await open();
  const { httpPort, pid } = serving.server;
  assert.equal((await infer(httpPort, "bystander", faultyRequest("orphan"))).status, 200);
  const spinning = infer(httpPort, "bystander", faultyRequest("spin"));
  const pending = await hold(serving, "held", "a");
  await pidIn(join(serving.repository, "bystander", "spin.running"));
  const cut = [assert.rejects(spinning), assert.rejects(pending.answer)];
  assert.ok(processesMarked(serving.mark).length >= 5);
  process.kill(pid, "SIGKILL");
  await Promise.all(cut);
  await assertNothingLeft(serving);
});

test("a server that is stopped first completes its running requests, rejects new ones, and leaves nothing behind", async () => {
  await using serving = await open();
  const { httpPort } = serving.server;
  const silent = connect(httpPort, "127.0.0.1");
  const silentEnded = new Promise((resolve) => silent.once("close", resolve).resume());
  const pending = await hold(serving, "held", "a");
  const stopped = serving.server.stop();
  await silentEnded;
  // A repeated signal arrives during the stop.
  process.kill(serving.server.pid, "SIGTERM");
  await until("the server accepts no more connections", () =>
    assertEchoes(httpPort, "bystander").then(
      () => false,
      () => true,
    ),
  );
  await pending.release();
  assert.equal((await pending.answer).status, 200);
  assert.equal(await stopped, 0);
  await assertNothingLeft(serving);
});

test("a server that is stopped while a model hangs exits with 1 after its exit timeout, and leaves nothing behind", async () => {
  await using serving = await open("", ["--exit-timeout-secs=1"]);
  const reported = infer(serving.server.httpPort, "held", faultyRequest("spin"));
  await pidIn(join(serving.repository, "held", "spin.running"));
  assert.equal(await serving.server.stop(), 1);
  assert.match(errorOf(await reported, 503), /^model 'held' version 1 was ended while it executed: the server exits/);
  await assertNothingLeft(serving);
});

test("a server that was killed in the middle of a load leaves files that its next start removes, and the model loads", async () => {
  await using serving = await open();
  const marker = join(serving.directory, "pid");
  const text = `import os, time
class TritonPythonModel:
  def initialize(self, args):
    open(${JSON.stringify(marker)}, "w").write(str(os.getpid()))
    time.sleep(600)
  def execute(self, requests): pass
`;
  const override = {
    parameters: {
      config: JSON.stringify({ backend: "python" }),
      "file:1/model.py": Buffer.from(text).toString("base64"),
    },
  };
  const loading = assert.rejects(load(serving.server.httpPort, "slow", override));
  await pidIn(marker);
  assert.notDeepEqual(await overrideFiles(serving), []);
  process.kill(serving.server.pid, "SIGKILL");
  await loading;
  await assertNothingLeft(serving);
  await writeFaultyModel(serving.repository, "slow");
  const again = await startGalatea({
    repositories: [serving.repository],
    flags: [`--data=${serving.data}`, "--model-control-mode=explicit", "--load-model=slow"],
    env: { TMPDIR: serving.temporary, NODE_COMPILE_CACHE: compileCache },
  });
  try {
    await assertEchoes(again.httpPort, "slow");
    assert.deepEqual(await overrideFiles(serving), []);
  } finally {
    await again.stop();
  }
});

async function overrideFiles({ data }: Serving): Promise<string[]> {
  const names = await readdir(join(data, "cache"), { recursive: true, withFileTypes: true });
  return names.filter((entry) => entry.isFile()).map(({ name }) => name);
}
