/** Model code that harms its own process: other models are not affected. */
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { assertEchoes, faultyRequest, errorOf, infer, load, outputOf, textOf, unload } from "./http-client.ts";
import { writeFaultyModel } from "./faulty-model.ts";
import { arenaBytes, descendantsOf, residentBytes } from "./processes.ts";
import { openServing, type Serving } from "./serving.ts";
import { pidIn, until } from "./until.ts";

let serving: Serving;
let port: number;
let modelCount = 0;

before(async () => {
  serving = await openServing({
    flags: ["--model-control-mode=explicit", "--load-model=bystander"],
    write: ({ repository }) => writeFaultyModel(repository, "bystander"),
  });
  port = serving.server.httpPort;
});
after(async () => {
  await serving[Symbol.asyncDispose]();
});

/** A separate model for a test, so that restarts and delays of other tests have no effect. */
async function loadFresh(more = "", text: string | null = null): Promise<string> {
  const name = `fresh_${(modelCount += 1)}`;
  await writeFaultyModel(serving.repository, name, { more, text });
  const response = await load(port, name);
  assert.equal(response.status, 200, response.body.toString());
  return name;
}

/** Free memory that an arena keeps for the next request. */
const warmBytes = 16 * 2 ** 20;

const workerPids = () => new Set(descendantsOf(serving.server.pid).map(({ pid }) => pid));

/** The instance is restarted after its process has died, with a growing delay. */
async function assertRecovers(model: string): Promise<void> {
  await until("the instance responds again", async () => {
    return (await infer(port, model, faultyRequest("echo"))).status === 200;
  });
  await assertEchoes(port, model);
}

const deaths: readonly [sentence: string, does: string, text: RegExp][] = [
  [
    "a model that reads address zero fails its request with the signal, its last words and its Python stack",
    "segfault",
    /^Stub process '\w+_0' is not healthy\. \(signal SIGSEGV; last output:\nabout to read address zero\n[^]*in segfault/,
  ],
  ["a model that calls os._exit fails its request with the exit code", "exit 7", /is not healthy\. \(exit code 7\)$/],
  ["a model that exits with 0 has failed all the same", "exit 0", /is not healthy\. \(exit code 0\)$/],
  ["a model that aborts fails its request with the signal", "abort", /is not healthy\. \(signal SIGABRT/],
  [
    "a model that closes descriptors that are not its own fails its request",
    "close_descriptors",
    /is not healthy\. \(exit code 1; last output:\n[^]*Bad file descriptor/,
  ],
  [
    "a worker that sends a malformed record is ended, and its request fails",
    "scribble",
    /is not healthy\. \(signal SIGKILL, ended because of: malformed record from a worker: /,
  ],
];
for (const [sentence, does, text] of deaths) {
  test(sentence, async () => {
    const model = await loadFresh();
    assert.match(errorOf(await infer(port, model, faultyRequest(does)), 500), text);
    await assertEchoes(port, "bystander");
    await assertRecovers(model);
    assert.equal((await unload(port, model)).status, 200);
  });
}

test("each request to a model that dies repeatedly gets its response at once, and the server does not busy-loop", async () => {
  const model = await loadFresh();
  const text = errorOf(await infer(port, model, faultyRequest("exit 3")), 500);
  // The delay doubles with each restart, up to 30 s: five more crashes take three seconds, twenty take six minutes.
  for (let death = 0; death < 5; death++) {
    const result = await infer(port, model, faultyRequest("exit 3"));
    assert.equal(errorOf(result, 500), text);
  }
  await assertEchoes(port, "bystander");
  assert.equal((await unload(port, model)).status, 200);
});

for (const [does, text] of [
  ["give_up", /raised on request/],
  ["system_exit", /SystemExit/],
] as const) {
  test(`a model that raises (${does}) fails its request and keeps its process`, async () => {
    const model = await loadFresh();
    const pid = textOf(await infer(port, model, faultyRequest("pid")));
    assert.match(errorOf(await infer(port, model, faultyRequest(does)), 500), text);
    assert.equal(textOf(await infer(port, model, faultyRequest("pid"))), pid);
  });
}

const badStarts: readonly [sentence: string, program: string, text: RegExp][] = [
  [
    "a model that raises in initialize is not loaded, and the load's error has the exception",
    "class TritonPythonModel:\n  def initialize(self, args):\n    raise ValueError('no weights here')\n  def execute(self, r): pass\n",
    /no weights here/,
  ],
  [
    "a model that crashes in initialize is not loaded, and the load says how it ended",
    "import ctypes\nclass TritonPythonModel:\n  def initialize(self, args):\n    ctypes.string_at(0)\n  def execute(self, r): pass\n",
    /signal SIGSEGV/,
  ],
  ["a model that exits while it is imported is not loaded", "import os\nos._exit(9)\n", /exit code 9/],
  [
    "a model that calls sys.exit while it is imported is not loaded",
    "import sys\nsys.exit('not today')\n",
    /SystemExit|not today/,
  ],
  [
    "a model that recurses without end in initialize is not loaded",
    "class TritonPythonModel:\n  def initialize(self, args):\n    self.initialize(args)\n  def execute(self, r): pass\n",
    /RecursionError/,
  ],
];
for (const [sentence, text, pattern] of badStarts) {
  test(sentence, async () => {
    const workers = workerPids();
    const name = `bad_${(modelCount += 1)}`;
    await writeFaultyModel(serving.repository, name, { text });
    const message = errorOf(await load(port, name), 400);
    assert.match(message, new RegExp(`^load failed for model '${name}': `));
    assert.match(message, pattern);
    await until("all processes of the attempt have ended", () => workerPids().difference(workers).size === 0);
    await assertEchoes(port, "bystander");
  });
}

test("a model that prints endlessly and other models respond, and the server buffers none of the output", async () => {
  const model = await loadFresh();
  const print = async () => {
    const call = [infer(port, model, faultyRequest("chatter 64")), infer(port, model, faultyRequest("one_line 64"))];
    await assertEchoes(port, "bystander");
    for (const response of await Promise.all(call)) assert.equal(response.status, 200, response.body.toString());
  };
  await print();
  const bytesBefore = residentBytes(serving.server.pid);
  for (let round = 0; round < 3; round++) await print();
  const grownBytes = residentBytes(serving.server.pid) - bytesBefore;
  assert.ok(grownBytes < 128 * 2 ** 20, `the server grew by ${grownBytes} bytes while 384 MiB were printed`);
});

test("a model that hangs with the interpreter lock held delays no other model, and can be ended", async () => {
  const model = await loadFresh();
  const left = new AbortController();
  const call = infer(port, model, faultyRequest("spin"), { signal: left.signal });
  const removed = assert.rejects(call);
  const pid = await pidIn(join(serving.repository, model, "spin.running"));
  await assertEchoes(port, "bystander");
  left.abort();
  await removed;
  process.kill(pid, "SIGKILL");
  await assertRecovers(model);
  assert.ok(!workerPids().has(pid));
});

test("a load whose client disconnects ends its worker in the middle of initialize", async () => {
  const name = `slow_${(modelCount += 1)}`;
  const text = `import os, time
class TritonPythonModel:
  def initialize(self, args):
    open(os.path.join(args["model_repository"], "pid"), "w").write(str(os.getpid()))
    time.sleep(600)
  def execute(self, r): pass
`;
  await writeFaultyModel(serving.repository, name, { text });
  const left = new AbortController();
  const loading = assert.rejects(
    infer(port, name, "{}", { path: `/v2/repository/models/${name}/load`, signal: left.signal }),
  );
  const pid = await pidIn(join(serving.repository, name, "pid"));
  left.abort();
  await loading;
  await until("its worker has ended", () => !workerPids().has(pid));
  await assertEchoes(port, "bystander");
});

test("a process that a model leaves behind ends with the model", async () => {
  const model = await loadFresh();
  const workers = workerPids();
  assert.equal((await infer(port, model, faultyRequest("orphan"))).status, 200);
  await until("there is one process more", () => workerPids().difference(workers).size === 1);
  assert.equal((await unload(port, model)).status, 200);
  await until("the orphan has ended", () => workerPids().difference(workers).size === 0);
});

test("a daemon that a model starts lives as long as the model, however that ends, and leaves no zombie", async () => {
  const before = workerPids();
  const model = await loadFresh();
  const daemon = async (does = "daemon") => Number(textOf(await infer(port, model, faultyRequest(does))));
  const first = await daemon();
  const worker = Number(textOf(await infer(port, model, faultyRequest("pid"))));
  await assertEchoes(port, "bystander");
  assert.ok(workerPids().has(first));
  process.kill(worker, "SIGKILL");
  await until("the first process has ended", () => !workerPids().has(first));
  await assertRecovers(model);
  const second = await daemon("daemon own-environment");
  process.kill(await daemon(), "SIGKILL");
  assert.ok(workerPids().has(second));
  assert.equal((await unload(port, model)).status, 200);
  await until("all of its processes have ended", () => workerPids().difference(before).size === 0);
});

test("model code reaches neither the server nor other models, and can use its own files and processes", async () => {
  const model = await loadFresh();
  const request = async (does: string) => textOf(await infer(port, model, faultyRequest(does)));
  const other = textOf(await infer(port, "bystander", faultyRequest("pid")));
  assert.equal(await request("own_business"), "done");
  const reached = await request(`reach ${serving.server.pid} ${other}`);
  const unconfined = /not isolated by Landlock \((.+?)\)/.exec(serving.server.log())?.[1];
  // Older kernels do not confine signals, and those without Landlock confine nothing; the log has a warning.
  if (unconfined === undefined) assert.match(reached, /^(?:signals signals)?$/);
  else assert.notEqual(reached, "");
});

test("a view that model code keeps after its request never changes", async () => {
  const model = await loadFresh();
  const elements = 300_000;
  const constant = (value: number) => Array.from({ length: elements }, () => value);
  for (const value of [1, 2, 3]) {
    const response = await infer(port, model, faultyRequest("keep", { value: constant(value) }));
    assert.equal(outputOf(response, "OUT").length, elements);
  }
  for (let value = 10; value < 14; value++) {
    await infer(port, model, faultyRequest("echo", { value: constant(value) }));
    await infer(port, "bystander", faultyRequest("echo", { value: constant(-value) }));
  }
  const sums = textOf(await infer(port, model, faultyRequest("kept_sums")));
  assert.equal(sums, [1, 2, 3].map((value) => `${value * elements}.0`).join(","));
});

test("a view that is kept after a request whose client disconnected never changes, and is released when it is dropped", async () => {
  const model = await loadFresh();
  const elements = 3_000_000;
  const header = (does: string) =>
    JSON.stringify({
      inputs: [
        { name: "DO", datatype: "BYTES", shape: [1], data: [does] },
        { name: "VALUE", datatype: "FP32", shape: [elements], parameters: { binary_data_size: elements * 4 } },
      ],
      outputs: [{ name: "TEXT" }],
    });
  const call = (does: string, value: number, signal?: AbortSignal) => {
    const json = Buffer.from(header(does));
    const body = Buffer.concat([json, Buffer.from(new Float32Array(elements).fill(value).buffer)]);
    const headers = { "inference-header-content-length": String(json.length) };
    return infer(port, model, body, { headers, ...(signal === undefined ? {} : { signal }) });
  };
  const bytesBefore = arenaBytes(serving.server.pid);
  const aborted = new AbortController();
  const left = assert.rejects(call("keep_and_hold it", 5, aborted.signal));
  const marker = join(serving.repository, model, "it");
  await pidIn(`${marker}.running`);
  aborted.abort();
  await left;
  await writeFile(`${marker}.go`, "");
  for (const value of [1, 2, 3, 4]) assert.equal((await call("echo", value)).status, 200);
  assert.equal(textOf(await infer(port, model, faultyRequest("kept_sums"))), `${5 * elements}.0`);
  assert.ok(arenaBytes(serving.server.pid) >= bytesBefore + elements * 4);
  assert.equal((await infer(port, model, faultyRequest("forget"))).status, 200);
  await until("its memory is released", async () => {
    // A worker reports released memory with its next response.
    await infer(port, model, faultyRequest("echo"));
    return arenaBytes(serving.server.pid) <= bytesBefore + warmBytes;
  });
});
