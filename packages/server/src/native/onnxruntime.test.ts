import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type OnnxModel, type OnnxType, onnxTypes, writeOnnxFile } from "../onnx-file/index.ts";
import { eventually } from "@galatea/base/core/eventually-fixture.ts";
import { InferenceError } from "@galatea/base";
import { DirectRuns } from "./direct-runs-fixture.ts";
import { openOnnxRuntime, plainSession, type OnnxRuntime, type OnnxSession } from "./onnxruntime.ts";
import { onnxRuntimeLibrary } from "./onnxruntime-library.ts";
import { usableProcessors } from "@galatea/base/system";

const libraryPath = onnxRuntimeLibrary();

let directory: string;
let runtime: OnnxRuntime;

before(async () => {
  // Official builds of the library leave files in the temporary directory unless this is set.
  process.env["ORT_DISABLE_TELEMETRY"] = "1";
  directory = await mkdtemp(join(tmpdir(), "onnxruntime-"));
  runtime = openOnnxRuntime({
    libraryPath,
    intraOpThreadCount: 2,
    ownThreadCountMax: 2,
    interOpThreadCount: 0,
    spin: false,
  });
});

after(async () => {
  await runtime[Symbol.asyncDispose]();
  await rm(directory, { recursive: true });
});

let modelCount = 0;

async function openModel(model: Partial<OnnxModel>): Promise<OnnxSession & { readonly runs: DirectRuns }> {
  modelCount += 1;
  const modelPath = join(directory, `model${modelCount}.onnx`);
  await writeOnnxFile(modelPath, {
    graphName: "test",
    opsets: { "": 17 },
    inputs: [],
    outputs: [],
    constants: [],
    operators: [],
    ...model,
  });
  return withRuns(await runtime.openSession({ ...plainSession, modelPath }));
}

function withRuns(session: OnnxSession): OnnxSession & { readonly runs: DirectRuns } {
  return Object.assign(session, { runs: new DirectRuns(runtime, session) });
}

const operator = (name: string, inputs: readonly string[], outputs: readonly string[]) => ({
  operator: name,
  domain: "",
  inputs,
  outputs,
  attributes: {},
});

function identity(type: OnnxType): Partial<OnnxModel> {
  return {
    inputs: [{ name: "x", type, dims: ["n"] }],
    outputs: [{ name: "y", type, dims: ["n"] }],
    operators: [operator("Identity", ["x"], ["y"])],
  };
}

/** Encodes strings as a BYTES tensor. */
function joinElements(elements: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  return new Uint8Array(
    Buffer.concat(
      elements.flatMap((element) => [Uint8Array.of(element.length & 255, element.length >> 8, 0, 0), element]),
    ),
  );
}

const noPlace = () => assert.fail("no output to allocate");

test("tensors of every fixed-size datatype are read from and written to the caller's memory", async () => {
  const bytesOf: Partial<Record<OnnxType, number>> = {
    FLOAT: 4,
    UINT8: 1,
    INT8: 1,
    UINT16: 2,
    INT16: 2,
    INT32: 4,
    INT64: 8,
    BOOL: 1,
    FLOAT16: 2,
    DOUBLE: 8,
    UINT32: 4,
    UINT64: 8,
    BFLOAT16: 2,
  };
  for (const [type, elementBytes] of Object.entries(bytesOf) as [OnnxType, number][]) {
    await using session = await openModel(identity(type));
    assert.deepEqual(session.inputs, [
      { name: "x", onnxType: 1, elementType: onnxTypes[type], dims: [-1], symbols: ["n"] },
    ]);
    const input = Uint8Array.from({ length: 3 * elementBytes }, (_, index) =>
      type === "BOOL" ? index % 2 : index + 1,
    );
    const output = new Uint8Array(input.length);
    session.runs.run({
      inputs: [{ index: 0, shape: [3], data: input }],
      outputs: [{ index: 0, target: { shape: [3], data: output } }],
      place: noPlace,
    });
    assert.deepEqual(output, input, type);

    const placed = new Uint8Array(input.length);
    const [result] = session.runs.run({
      inputs: [{ index: 0, shape: [3], data: input }],
      outputs: [{ index: 0, target: null }],
      place: (index, { shape, byteLength }) => {
        assert.deepEqual([index, shape, byteLength], [0, [3], input.length]);
        return placed;
      },
    });
    assert.deepEqual(placed, input, type);
    assert.deepEqual([result?.shape, result?.elementType], [[3], onnxTypes[type]]);
  }
});

test("strings keep every byte, zeros included", async () => {
  await using session = await openModel(identity("STRING"));
  const elements = ["", "ä日本", "a\0b", "x".repeat(10_000)].map((text) => new TextEncoder().encode(text));
  for (const some of [elements, elements.slice(0, 1), []]) {
    const data = joinElements(some);
    let createHandle = new Uint8Array(0);
    const [result] = session.runs.run({
      inputs: [{ index: 0, shape: [some.length], data }],
      outputs: [{ index: 0, target: null }],
      place: (_index, { byteLength }) => (createHandle = new Uint8Array(byteLength)),
    });
    assert.deepEqual([...createHandle], [...data]);
    assert.deepEqual(result?.shape, [some.length]);
  }
});

test("strings whose number differs from the shape, or that are truncated, are rejected", async () => {
  await using session = await openModel(identity("STRING"));
  const complete = joinElements([new TextEncoder().encode("abc")]);
  for (const [data, count] of [
    [complete, 2],
    [joinElements([new Uint8Array(1), new Uint8Array(1)]), 1],
    [complete.subarray(0, 6), 1],
    [complete.subarray(0, 2), 1],
  ] as const) {
    const order = { inputs: [{ index: 0, shape: [count], data }], outputs: [{ index: 0, target: null }] };
    assert.throws(() => session.runs.run({ ...order, place: noPlace }), /complete strings, its shape has/);
  }
});

test("errors of ONNX Runtime are reported with their own text", async () => {
  const broken = join(directory, "broken.onnx");
  await writeFile(broken, "this is no model");
  await assert.rejects(runtime.openSession({ ...plainSession, modelPath: broken }), {
    code: "INTERNAL",
    message: /^onnx runtime error 7: Load model from .*broken\.onnx failed:Protobuf parsing failed\.$/,
  });
  await assert.rejects(runtime.openSession({ ...plainSession, modelPath: join(directory, "absent.onnx") }), {
    message: /^onnx runtime error 3: .*absent\.onnx.*/,
  });
  await assert.rejects(openModel({ ...identity("FLOAT"), opsets: { "": 9999 } }), {
    message: /^onnx runtime error \d+: .*opset/i,
  });
  await using session = await openModel(identity("FLOAT"));
  const tooShort = [{ index: 0, shape: [3], data: new Uint8Array(8) }];
  assert.throws(() => session.runs.run({ inputs: tooShort, outputs: [], place: noPlace }), {
    message: /^onnx runtime error 2: not enough space/,
  });
  assert.throws(
    () =>
      openOnnxRuntime({
        libraryPath: broken,
        intraOpThreadCount: 1,
        ownThreadCountMax: 0,
        interOpThreadCount: 0,
        spin: false,
      }),
    (error) => error instanceof InferenceError && error.code === "UNAVAILABLE" && error.message.includes(broken),
  );
});

test("a session's threads are bound to their own processors, and end with the session", async () => {
  // Counts the threads that may run on only one processor.
  const boundCount = () =>
    readdirSync("/proc/self/task").filter((task) =>
      /^Cpus_allowed_list:\t\d+$/m.test(readFileSync(`/proc/self/task/${task}/status`, "utf8")),
    ).length;
  const processorCount = usableProcessors().order.length;
  const before = boundCount();
  {
    await using _session = await openModel(identity("FLOAT"));
    // The library pins a thread when the thread first runs.
    await eventually(() => boundCount() - before === (processorCount > 1 ? 1 : 0));
  }
  assert.equal(boundCount(), before);
});

test("200 loads and runs leave no memory behind", async () => {
  const width = 1024;
  const modelPath = join(directory, "weights.onnx");
  await writeOnnxFile(modelPath, {
    graphName: "weights",
    opsets: { "": 17 },
    inputs: [{ name: "x", type: "FLOAT", dims: ["n", width] }],
    outputs: [{ name: "y", type: "FLOAT", dims: ["n", width] }],
    constants: [{ name: "w", type: "FLOAT", dims: [width, width], bytes: new Uint8Array(width * width * 4) }],
    operators: [operator("MatMul", ["x", "w"], ["y"])],
  });
  const data = new Uint8Array(8 * width * 4);
  const cycle = async () => {
    await using session = withRuns(await runtime.openSession({ ...plainSession, modelPath }));
    session.runs.run({
      inputs: [{ index: 0, shape: [8, width], data }],
      outputs: [{ index: 0, target: null }],
      place: (_index, { byteLength }) => data.subarray(0, byteLength),
    });
  };
  for (let i = 0; i < 20; i += 1) await cycle();
  const beforeBytes = process.memoryUsage.rss();
  for (let i = 0; i < 200; i += 1) await cycle();
  const grownBytes = process.memoryUsage.rss() - beforeBytes;
  // One leaked session would be 4 MiB; 200 of them would be 800 MiB.
  assert.ok(grownBytes < 40 * 2 ** 20, `grew by ${grownBytes} bytes`);
});

test("the library stays mapped as long as it is in use", () => {
  // Before the first session, only this program keeps the library loaded.
  const script = `
    import { setImmediate } from "node:timers/promises";
    import { openOnnxRuntime } from ${JSON.stringify(new URL("./onnxruntime.ts", import.meta.url).href)};
    const counts = { intraOpThreadCount: 1, interOpThreadCount: 1, ownThreadCountMax: 0 };
    const runtime = openOnnxRuntime({ libraryPath: process.argv[1], ...counts, spin: false });
    for (let i = 0; i < 5; i++) {
      gc();
      await setImmediate();
    }
    await runtime[Symbol.asyncDispose]();
  `;
  const args = ["--expose-gc", "--input-type=module-typescript", "-e", script, libraryPath];
  const { status, signal, stderr } = spawnSync(process.execPath, args);
  assert.deepEqual([status, signal], [0, null], stderr.toString());
});
