/** The backend `pytorch` with real architectures, compared with PyTorch's own forward pass in the same environment. */
import assert from "node:assert/strict";
import { copyFile, link, mkdir, readdir, readFile, readlink, stat } from "node:fs/promises";
import { join } from "node:path";
import { startGalatea } from "../environments/index.ts";
import { eventually } from "../../packages/base/src/core/eventually-fixture.ts";
import { after, before, test } from "node:test";
import {
  assertClose,
  floats,
  haveShared,
  infer,
  responds,
  load,
  numbers,
  openFramework,
  workerOf,
  workersOf,
  type FrameworkFixture,
} from "./framework-fixture.ts";

let fixture: FrameworkFixture;
before(async () => {
  fixture = await openFramework("pytorch");
});
after(() => fixture[Symbol.asyncDispose]());

test("further PyTorch models are forks of the first: their loads import nothing", async () => {
  const ms: number[] = [];
  for (const model of ["same", "listed", "encoder_exported"]) {
    const began = performance.now();
    assert.equal(await load(fixture.server, model), null);
    ms.push(performance.now() - began);
  }
  const [first, ...further] = ms;
  // The fastest load counts, because a busy machine may delay any of them.
  assert.ok(Math.min(...further) < first! / 3, `loads took ${ms.map(Math.round).join(", ")} ms`);
});

const modelFile = "/memfd:galatea-model-file";

/** Returns the private bytes of a process, without those of the model file. */
async function memoryOf(pid: number): Promise<number> {
  let bytes = 0;
  let isFile = false;
  for (const line of (await readFile(`/proc/${pid}/smaps`, "latin1")).split("\n")) {
    if (/^[0-9a-f]+-[0-9a-f]+ /.test(line)) isFile = line.includes(modelFile);
    const kibibytes = /^Private_\w+:\s+(\d+) kB$/.exec(line)?.[1];
    if (!isFile && kibibytes !== undefined) bytes += Number(kibibytes) * 1024;
  }
  return bytes;
}

const restMsMax = 20_000;

for (const model of ["same", "recurrent", "encoder", "resnet50", "encoder_exported", "wide"])
  test(`an idle model has at most 30 MB of private memory besides its file: ${model}`, async () => {
    assert.equal(await load(fixture.server, model), null);
    for (const one of fixture.cases.filter((each) => each.model === model))
      for (let time = 0; time < 4; time++) await responds(fixture, one);
    const pid = await workerOf(fixture, model);
    // The memory of its runs is released a while after the last one.
    await eventually(async () => (await memoryOf(pid)) <= 30e6, restMsMax);
  });

/** Returns the inode of the memory that a worker maps as its model's file; undefined if it maps none. */
async function mappedFile(pid: number): Promise<string | undefined> {
  const maps = await readFile(`/proc/${pid}/maps`, "latin1");
  const line = maps.split("\n").find((each) => each.includes(modelFile));
  return line?.split(/\s+/)[4];
}

test("equal model files are in memory once for all models and instances", async () => {
  for (const model of ["drifting_once", "drifting_twice"]) assert.equal(await load(fixture.server, model), null);
  const pids = [...(await workersOf(fixture, "drifting_once")), ...(await workersOf(fixture, "drifting_twice"))];
  assert.equal(pids.length, 3);
  const inodes = await Promise.all(pids.map(mappedFile));
  assert.ok(inodes[0] !== undefined && new Set(inodes).size === 1, String(inodes));
});

test("a model's writes to its weights are invisible to other models and to its other instances", async () => {
  for (const model of ["drifting_once", "drifting_twice"]) assert.equal(await load(fixture.server, model), null);
  const request = async (model: string) => {
    const reply = await infer(fixture.server, model, [floats("INPUT__0", [1])], ["OUTPUT__0"]);
    return numbers(reply.outputs.get("OUTPUT__0")!.data)[0]!;
  };
  for (const expected of [1, 2, 3]) assert.equal(await request("drifting_once"), expected);
  const responses = [];
  for (let time = 0; time < 8; time++) responses.push(await request("drifting_twice"));
  // Each instance counts its own requests, from zero.
  assert.equal(responses.filter((one) => one === 1).length, new Set(counted(responses)).size, String(responses));
  assert.equal(await request("drifting_once"), 4);
});

/** Assigns each response to one of two counters, in the order of arrival; throws if a response fits neither. */
function counted(responses: readonly number[]): readonly number[] {
  const counters: number[] = [];
  return responses.map((result) => {
    const of = result === 1 ? counters.length : counters.indexOf(result - 1);
    assert.ok(of !== -1 && of < 2, `${responses.join(" ")}: ${result} follows nothing`);
    counters[of] = result;
    return of;
  });
}

test("every PyTorch model returns what PyTorch computes, alone and in a batch", async () => {
  const models = [...new Set(fixture.cases.map(({ model }) => model))];
  for (const model of models) assert.equal(await load(fixture.server, model), null, model);
  await Promise.all(fixture.cases.map((one) => responds(fixture, one)));
  for (const one of fixture.cases) await responds(fixture, one);
});

test("the requests of one batch share one forward call", async () => {
  const ones = (rows: number) =>
    floats(
      "INPUT__0",
      Array.from({ length: rows * 3 * 64 * 64 }, () => 1),
      [rows, 3, 64, 64],
    );
  const request = () =>
    Promise.all([1, 2, 1].map((rows) => infer(fixture.server, "resnet50", [ones(rows)], ["OUTPUT__0"])));
  const replies = await request();
  const responses = replies.map(({ outputs }) => outputs.get("OUTPUT__0")!);
  assert.deepEqual(
    responses.map(({ shape }) => shape),
    [
      [1, 1000],
      [2, 1000],
      [1, 1000],
    ],
  );
  assertClose(responses[2]!.data, responses[0]!.data, "the same picture");
  // Only requests that arrive within 20 ms share a batch, which on a busy machine needs several tries.
  await eventually(async () => (await haveShared(fixture, "resnet50")) || (await request(), false));
});

test("a model may overwrite its input, and every request still gets its own data", async () => {
  const values = Array.from({ length: 5000 }, (_, index) => index);
  for (let run = 0; run < 3; run++) {
    const reply = await infer(fixture.server, "in_place", [floats("INPUT__0", values)], ["OUTPUT__0"]);
    assert.deepEqual([...numbers(reply.outputs.get("OUTPUT__0")!.data)].slice(0, 3), [0, 2, 4]);
  }
});

test("a model has the number of threads that its parameters set", async () => {
  const counts = await Promise.all(
    [1, 3].map(async (count) => (await readdir(`/proc/${await workerOf(fixture, `threads_${count}`)}/task`)).length),
  );
  // PyTorch has two pools, each with as many threads in addition to the main thread.
  assert.deepEqual(counts, [1, 1 + 2 * (3 - 1)]);
});

test("without parameters for threads, a model has PyTorch's default numbers of threads", async () => {
  assert.equal(await load(fixture.server, "default_threads"), null);
  await responds(
    fixture,
    fixture.cases.find(({ model }) => model === "default_threads")!,
  );
});

/** Returns the number of minor page faults of a process. */
async function faultsOf(pid: number): Promise<number> {
  const line = await readFile(`/proc/${pid}/stat`, "latin1");
  return Number(line.slice(line.lastIndexOf(")") + 2).split(" ")[7]);
}

test("memory of one run is reused by the next run without page faults", async () => {
  assert.equal(await load(fixture.server, "wide"), null);
  const one = fixture.cases.find(({ model }) => model === "wide")!;
  for (let run = 0; run < 4; run++) await responds(fixture, one);
  const pid = await workerOf(fixture, "wide");
  const found: number[] = [];
  // 48 MB are 11,719 pages. One run without faults is enough, because on a busy machine the worker may release its
  // memory between two runs.
  do {
    const before = await faultsOf(pid);
    await responds(fixture, one);
    found.push((await faultsOf(pid)) - before);
  } while (found.length < 40 && Math.min(...found) >= 500);
  assert.ok(Math.min(...found) < 500, `pages given: ${found.join(", ")}`);
});

const refusals: readonly [model: string, sentence: string | RegExp][] = [
  ["load_count", "unable to load model 'load_count', configuration expects 2 inputs, model provides 1"],
  [
    "load_argument",
    "An input of type 'int' was detected in the model. Only a single input of type Dict(str, Tensor) or input(s) of type Tensor are supported.",
  ],
  [
    "load_index",
    /^The input INPUT__4 in the model configuration refers to an input index which doesn't exist\. This model has 1 inputs/,
  ],
  ["load_strings", "Triton only supports 1 dimensional List of String as input for 'texts' for model 'load_strings'"],
  ["load_boolean", "failed to convert 'perhaps' to boolean"],
  ["load_absent", /^unable to find '.*\/load_absent\/1\/model.pt' for model instance 'load_absent'/],
  [
    "load_weights",
    /the file was written by torch.save and contains no program: save one with torch.jit.save or torch.export.save/,
  ],
  [
    "load_compiled",
    /the file is a package of AOTInductor, which holds machine code: it is not served; save the program with torch.export.save/,
  ],
  ["load_states", /model 'load_states' uses 'sequence_batching', which this server does not support yet/],
];

for (const [model, sentence] of refusals)
  test(`${model}: the load fails with the expected error`, async () => {
    const error = await load(fixture.server, model);
    assert.notEqual(error, null);
    const own = error!
      .replace(/^load failed for model '[^']*': version 1 is at UNAVAILABLE state: (\w+: )?/, "")
      .replace(/;\n?$/, "");
    if (typeof sentence === "string") assert.equal(own, sentence);
    else assert.match(own, sentence);
  });

const failures: readonly [model: string, output: string, values: readonly number[], sentence: string | RegExp][] = [
  ["wrong_scalar", "OUTPUT__0", [1], "output 'OUTPUT__0' is a scalar which is not supported."],
  [
    "wrong_typed",
    "OUTPUT__1",
    [1],
    "configuration expects datatype TYPE_FP32 for output 'OUTPUT__1', model provides TYPE_FP64",
  ],
  ["wrong_rows", "OUTPUT__2", [1, 1], "output 'OUTPUT__2' has 1 rows for a batch of 2"],
  [
    "wrong_beyond",
    "OUTPUT__3",
    [1],
    "The output OUTPUT__3 in the model configuration refers to an output index which doesn't exist. This model has 3 outputs",
  ],
  ["wrong_rows", "OUTPUT__2", [1000], /^PyTorch execute failure: .*more than a hundred/s],
];

for (const [model, output, values, sentence] of failures)
  test(`${model}: the request fails with the expected error, and the model stays loaded: ${String(sentence)}`, async () => {
    assert.equal(await load(fixture.server, model), null);
    const reply = await infer(fixture.server, model, [floats("INPUT__0", values, [values.length, 1])], [output]);
    if (typeof sentence === "string") assert.equal(reply.error, sentence);
    else assert.match(reply.error!, sentence);
  });

test("the server keeps a model file open as long as a worker maps it, and no longer", async () => {
  const { server } = fixture;
  const unload = async (model: string) => {
    const url = `http://127.0.0.1:${server.httpPort}/v2/repository/models/${model}/unload`;
    assert.ok((await fetch(url, { method: "POST" })).ok, model);
    await eventually(async () => (await workersOf(fixture, model)).length === 0);
  };
  for (const model of ["drifting_once", "drifting_twice"]) assert.equal(await load(server, model), null);
  const inode = await mappedFile(await workerOf(fixture, "drifting_once"));
  const isHeld = async () => {
    const directory = `/proc/${server.pid}/fd`;
    // Files on disks may have an equal inode number, so the path is compared too.
    const isThere = async (path: string) =>
      (await readlink(path)).startsWith(modelFile) && String((await stat(path)).ino) === inode;
    const found = (await readdir(directory)).map((fd) => isThere(join(directory, fd)).catch(() => false));
    return (await Promise.all(found)).includes(true);
  };
  assert.ok(await isHeld());
  await unload("drifting_twice");
  assert.equal(await mappedFile(await workerOf(fixture, "drifting_once")), inode);
  assert.ok(await isHeld());
  await unload("drifting_once");
  await eventually(async () => !(await isHeld()));
});

test("models with the same file are charged for it once", async () => {
  const again = join(fixture.repository, "resnet50_again");
  const file = join(fixture.repository, "resnet50", "1", "model.pt");
  await mkdir(join(again, "1"), { recursive: true });
  await link(file, join(again, "1", "model.pt"));
  await copyFile(join(fixture.repository, "resnet50", "config.pbtxt"), join(again, "config.pbtxt"));
  const { size } = await stat(file);
  const server = await startGalatea({
    repositories: [fixture.repository],
    flags: ["--model-control-mode=explicit", `--memory-budget-bytes=${Math.round(2.1 * size)}`],
  });
  try {
    for (const model of ["resnet50", "resnet50_again"]) assert.equal(await load(server, model), null);
  } finally {
    await server.stop();
  }
});

test("a confined worker maps the model file from the server's memory", async () => {
  const server = await startGalatea({
    repositories: [fixture.repository],
    flags: ["--model-control-mode=explicit", "--worker-confinement=tenants"],
  });
  try {
    for (const model of ["encoder", "drifting_once"]) assert.equal(await load(server, model), null);
    const [pid] = await workersOf({ ...fixture, server }, "drifting_once");
    assert.match(await readFile(`/proc/${pid}/maps`, "latin1"), new RegExp(modelFile));
    await responds(
      { ...fixture, server },
      fixture.cases.find(({ model }) => model === "encoder")!,
    );
  } finally {
    await server.stop();
  }
});
