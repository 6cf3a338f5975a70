import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { releaseResponse, type InferenceResponse } from "../../inference/index.ts";
import { readProcessStart } from "@galatea/base/processes";
import { datatypes, type Datatype } from "../../tensor/index.ts";
import {
  addSubConfig,
  addSubModel,
  infer,
  echo,
  floats,
  floatsOf,
  header,
  inArena,
  model,
  oneInOneOut,
  only,
  openFixture,
  pidOf,
  request,
  tensor,
  until,
  type PythonFixture,
} from "./python-fixture.ts";

let fixture: PythonFixture;

before(async () => {
  fixture = await openFixture({ hangReportMs: 150 });
});

after(() => fixture[Symbol.asyncDispose]());

test("a batch of requests is executed in one call, with its responses in order", async () => {
  await using loaded = await fixture.load("add_sub", addSubModel, addSubConfig);
  const values = Array.from({ length: 16 }, (_, index) => index);
  const batch = [1, 10].map((factor) =>
    request([
      floats(
        "INPUT0",
        values.map((v) => v * factor),
      ),
      floats("INPUT1", values),
    ]),
  );
  const { outcomes, computeInferNs } = await only(loaded).execute(batch);
  assert.ok(computeInferNs > 0);
  const [first, second] = outcomes as InferenceResponse[];
  assert.deepEqual(
    floatsOf(first!.outputs[0]!),
    values.map((v) => 2 * v),
  );
  assert.deepEqual(
    floatsOf(second!.outputs[1]!),
    values.map((v) => 9 * v),
  );
  assert.equal(only(loaded).name, "add_sub_0");
});

const throughCapsule = `return [pb_utils.InferenceResponse([pb_utils.Tensor.from_dlpack("OUT", t.to_dlpack())])
            for r in requests for t in [r.inputs()[0]]]`;

test("from_dlpack accepts capsules and exporting objects, once each, and nothing else", async () => {
  await using capsules = await fixture.load("capsules", model(throughCapsule));
  const input = inArena(fixture.arena, floats("IN", [1, 2.5, -3]));
  const response = await infer(capsules, [input]);
  assert.deepEqual(floatsOf(response.outputs[0]!), [1, 2.5, -3]);
  releaseResponse(response);
  input.block!.release();
  const body = `import numpy as np
numbers = np.arange(3, dtype=np.float32)
assert pb_utils.Tensor.from_dlpack("OUT", pb_utils.Tensor("A", numbers)).as_numpy().tolist() == [0, 1, 2]
capsule = numbers.__dlpack__()
pb_utils.Tensor.from_dlpack("OUT", capsule)
told = []
for wrong in (capsule, "text", np.arange(6, dtype=np.float32).reshape(2, 3).T):
    try:
        pb_utils.Tensor.from_dlpack("OUT", wrong)
    except pb_utils.TritonModelException as error:
        told.append(str(error)[:24])
try:
    pb_utils.Tensor("S", np.array([b"x"], dtype=np.object_)).to_dlpack()
except pb_utils.TritonModelException as error:
    told.append(str(error)[:24])
assert told == ["Tensor.from_dlpack: expe"] * 2 + ["DLPack tensor is not con", "DLPack does not have sup"], told
return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", numbers)]) for r in requests]`;
  await using refusing = await fixture.load("refusing", model(body));
  assert.deepEqual(floatsOf((await infer(refusing, [floats("IN", [0])])).outputs[0]!), [0, 1, 2]);
  assert.equal(fixture.arena.usedBytes, 0);
});

test("every datatype and shape round-trips, inline and in the arena", async () => {
  for (const datatype of Object.keys(datatypes) as Datatype[]) {
    const { byteSize, configName } = datatypes[datatype];
    // numpy has no BF16 type, so the model passes the tensor through DLPack.
    const body = datatype === "BF16" ? throughCapsule : echo;
    const config = `backend: "python" input [{ name: "IN" data_type: ${configName} dims: [ -1, -1 ] }]
      output [{ name: "OUT" data_type: ${configName} dims: [ -1, -1 ] }]`;
    await using loaded = await fixture.load(`type_${datatype.toLowerCase()}`, model(body), config);
    for (const shape of [
      [2, 3],
      [0, 4],
      [64, 1024],
    ]) {
      const count = shape[0]! * shape[1]!;
      const data =
        byteSize > 0
          ? Uint8Array.from({ length: count * byteSize }, (_, index) => (datatype === "BOOL" ? index & 1 : index % 120))
          : Buffer.concat(
              Array.from({ length: count }, (_, i) => Buffer.from([i % 3, 0, 0, 0, 0xff, 0x00].slice(0, 4 + (i % 3)))),
            );
      const response = await infer(loaded, [tensor("IN", datatype, shape, data)]);
      const [output] = response.outputs;
      assert.deepEqual([output!.datatype, output!.shape], [datatype, shape]);
      assert.ok(Buffer.from(data).equals(output!.data), `${datatype} ${shape.join("x")}`);
      releaseResponse(response);
    }
  }
  assert.equal(fixture.arena.usedBytes, 0);
});

test("an output that is the input is passed by reference, and a new array is copied to the arena", async () => {
  await using identity = await fixture.load("identity", model(echo));
  await using doubled = await fixture.load("doubled", model(echo.replace("as_numpy()", "as_numpy()[::-1] * 2")));
  const values = Array.from({ length: 100_000 }, (_, index) => index % 1000);
  for (let round = 0; round < 3; round++) {
    const input = inArena(fixture.arena, floats("IN", values));
    const same = await infer(identity, [input]);
    assert.equal(same.outputs[0]!.block, input.block);
    const other = await infer(doubled, [input]);
    input.block!.release();
    assert.notEqual(other.outputs[0]!.block, input.block);
    assert.deepEqual(floatsOf(other.outputs[0]!).slice(0, 3), [1998, 1996, 1994]);
    releaseResponse(same);
    releaseResponse(other);
    assert.equal(fixture.arena.usedBytes, 0);
  }
});

test("a view that the model keeps after its request stays valid", async () => {
  const keeps = model(
    "kept = getattr(self, 'kept', None)\nself.kept = requests[0].inputs()[0].as_numpy()[10:]\n" +
      "value = np.array([-1 if kept is None else kept[0]], np.float32)\nif len(self.kept) < 5: self.kept = None\n" +
      'return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", value)])]',
  );
  await using loaded = await fixture.load("keeps", keeps);
  const send = async (value: number, count: number) => {
    const input = inArena(
      fixture.arena,
      floats(
        "IN",
        Array.from({ length: count }, () => value),
      ),
    );
    const signal = AbortSignal.abort();
    const execution = only(loaded).execute([request([input], { signal })]);
    const { outcomes } = await execution;
    input.block!.release();
    return floatsOf((outcomes[0] as InferenceResponse).outputs[0]!)[0];
  };
  assert.equal(await send(7, 50_000), -1);
  assert.ok(fixture.arena.usedBytes >= 200_000, "the loan outlives the request");
  // Memory that is allocated and written from now on must not change the kept view.
  for (let round = 0; round < 20; round++) {
    const block = fixture.arena.allocate(200_000);
    block.bytes.fill(0xee);
    block.release();
  }
  assert.equal(await send(8, 50_000), 7);
  assert.equal(await send(9, 12), 8);
  await until(() => fixture.arena.usedBytes === 0);
});

test("only requested outputs are sent, unknown ones are dropped", async () => {
  const body =
    'one = np.ones(3, np.float32)\nreturn [pb_utils.InferenceResponse([pb_utils.Tensor(n, one) for n in ("A", "STRANGER", "B")]) for r in requests]';
  const config = `backend: "python" input [{ name: "IN" data_type: TYPE_FP32 dims: [ -1 ] }]
    output [{ name: "A" data_type: TYPE_FP32 dims: [ -1 ] }, { name: "B" data_type: TYPE_FP32 dims: [ -1 ] }]`;
  await using loaded = await fixture.load("outputs", model(body), config);
  const namesOf = async (requestedOutputs: string[] | null) => {
    const { outcomes } = await only(loaded).execute([request([floats("IN", [1])], { requestedOutputs })]);
    return (outcomes[0] as InferenceResponse).outputs.map((output) => output.name);
  };
  assert.deepEqual(await namesOf(null), ["A", "B"]);
  assert.deepEqual(await namesOf(["B"]), ["B"]);
});

test("a request shows its id, parameters, sequence and timeout; pb_utils logs to the server", async () => {
  const body =
    'r = requests[0]\npb_utils.Logger.log_warn("seen")\n' +
    "text = repr((r.request_id(), r.correlation_id(), r.flags(), r.timeout(), r.parameters(), r.requested_output_names()))\n" +
    'return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([text], dtype=object))])]';
  await using loaded = await fixture.load("facts", model(body), oneInOneOut("TYPE_STRING"));
  const one = request([tensor("IN", "BYTES", [0], new Uint8Array())], {
    id: "kärnten",
    parameters: new Map<string, string | bigint | boolean>([
      ["a", "x"],
      ["n", 2n ** 60n],
      ["t", true],
    ]),
    sequence: { id: 42n, start: true, end: false },
    queueTimeoutUs: 5_000_000_000,
  });
  const { outcomes } = await only(loaded).execute([one]);
  const [output] = (outcomes[0] as InferenceResponse).outputs;
  assert.equal(
    Buffer.from(output!.data).subarray(4).toString(),
    `('kärnten', 42, 1, 5000000000, '{"a":"x","n":1152921504606846976,"t":true}', {'OUT'})`,
  );
  assert.ok(fixture.log.includes("warning: seen"));
});

test("async execute is awaited", async () => {
  const source = `${header}import asyncio\nclass TritonPythonModel:\n    async def execute(self, requests):\n        await asyncio.sleep(0)\n        ${echo}\n`;
  await using loaded = await fixture.load("async_model", source);
  assert.deepEqual(floatsOf((await infer(loaded, [floats("IN", [1, 2])])).outputs[0]!), [1, 2]);
});

const failures: readonly [name: string, body: string, code: string, message: RegExp | string][] = [
  [
    "raises",
    'raise ValueError("bad\\nthing")',
    "INTERNAL",
    /^Failed to process the request\(s\) for model 'raises_0', message: ValueError: bad\nthing\n\nAt:\n {2}\/.*\/raises\/1\/model\.py\(5\): execute\n$/,
  ],
  [
    "exits",
    "raise SystemExit(3)",
    "INTERNAL",
    /^Failed to process the request\(s\) for model 'exits_0', message: SystemExit: 3\n\nAt:\n/,
  ],
  [
    "wrongtype",
    "return 5",
    "INTERNAL",
    "Failed to process the request(s) for model 'wrongtype_0', message: Expected a list in the execute return, found type '<class 'int'>'.",
  ],
  [
    "none",
    "return None",
    "INTERNAL",
    "Failed to process the request(s) for model 'none_0', message: Expected a list in the execute return, found type '<class 'NoneType'>'.",
  ],
  [
    "wrongitem",
    "return [5]",
    "INTERNAL",
    "Failed to process the request(s) for model 'wrongitem_0', message: Expected an 'InferenceResponse' object in the execute function return list, found type '<class 'int'>'.",
  ],
  [
    "wrongcount",
    "return []",
    "INTERNAL",
    "Failed to process the request(s) for model 'wrongcount_0', message: Number of InferenceResponse objects do not match the number of InferenceRequest objects. InferenceRequest(s) size is:1, and InferenceResponse(s) size is:0\n",
  ],
  [
    "perrequest",
    'return [pb_utils.InferenceResponse(error=pb_utils.TritonError("no luck", pb_utils.TritonError.NOT_FOUND))]',
    "NOT_FOUND",
    "no luck",
  ],
  [
    "bls",
    "pb_utils.InferenceRequest(model_name='x')",
    "INTERNAL",
    /message: TypeError: __init__\(\): incompatible constructor arguments.*Invoked with: kwargs: model_name='x'\n/s,
  ],
  [
    "memory",
    "pb_utils.PreferredMemory(2, 0)",
    "INTERNAL",
    /TypeError: __init__\(\): incompatible constructor arguments.*PreferredMemory\(.*Invoked with: 2, 0\n/s,
  ],
  [
    "sender",
    "requests[0].get_response_sender()",
    "INTERNAL",
    "The response sender went away without having sent a response.",
  ],
  // The texts of Triton 2.51, which come from pybind11.
  [
    "speechless",
    'class E(Exception):\n    def __str__(self): raise ValueError("nope")\nraise E()',
    "INTERNAL",
    /^Failed to process the request\(s\) for model 'speechless_0', message: E: <MESSAGE UNAVAILABLE DUE TO ANOTHER EXCEPTION>\n\nAt:\n {2}\/.*model\.py\(7\): execute\n\nMESSAGE UNAVAILABLE DUE TO EXCEPTION: ValueError: nope\n\nAt:\n {2}\/.*model\.py\(6\): __str__\n$/,
  ],
  [
    "speechlesstwice",
    "class E(Exception):\n    def __str__(self): raise E()\nraise E()",
    "INTERNAL",
    /E: <MESSAGE UNAVAILABLE DUE TO ANOTHER EXCEPTION>\n[^]*MESSAGE UNAVAILABLE DUE TO EXCEPTION: E: <MESSAGE UNAVAILABLE>$/,
  ],
  [
    "notext",
    "class E(Exception):\n    __str__ = lambda self: 7\nraise E()",
    "INTERNAL",
    /TypeError: __str__ returned non-/,
  ],
  ["surrogates", "raise ValueError('half \\udc80 of it')", "INTERNAL", /message: ValueError: half \\udc80 of it\n/],
  ["gigantic", "raise ValueError('x' * 70_000_000)", "INTERNAL", /message: ValueError: x{65000}/],
];

for (const [name, body, code, message] of failures) {
  test(`the error of a model that fails with '${name}' is Triton's, and the process survives`, async () => {
    await using loaded = await fixture.load(name, model(body));
    const pid = pidOf(loaded);
    await assert.rejects(infer(loaded, [floats("IN", [1])]), { code, message });
    assert.equal(pidOf(loaded), pid);
  });
}

const memoryErrors: readonly [what: string, raised: string, reason: string | null][] = [
  ["MemoryError", "raise MemoryError('x')", "out-of-memory"],
  ["numpy's own, which derives from it", "np.empty(2**60, np.uint8)", "out-of-memory"],
  ["torch's", "raise type('OutOfMemoryError', (RuntimeError,), {'__module__': 'torch'})('CUDA')", "out-of-memory"],
  [
    "an older torch's",
    "raise type('OutOfMemoryError', (RuntimeError,), {'__module__': 'torch.cuda'})('CUDA')",
    "out-of-memory",
  ],
  ["one that only says so", "raise RuntimeError('CUDA out of memory, OOM, MemoryError')", null],
  ["a class of the model's own by that name", "raise type('MemoryError', (RuntimeError,), {})('OOM')", null],
  ["a class that names itself with a list", "raise type('E', (RuntimeError,), {'__module__': []})('OOM')", null],
];

for (const [what, raised, reason] of memoryErrors) {
  test(`only an exception's type decides whether it means out of memory: ${what}`, async () => {
    await using loaded = await fixture.load("memory_error", model(raised));
    await assert.rejects(infer(loaded, [floats("IN", [1])]), { code: "INTERNAL", reason });
    const source = `${header}class TritonPythonModel:
    def initialize(self, args):
        ${raised}
    def execute(self, requests): return []
`;
    await assert.rejects(fixture.load("memory_error_at_load", source), { code: "INTERNAL", reason });
  });
}

test("the log is written at the levels that Logger names", async () => {
  const lines = ["INFO", "WARNING", "ERROR", "VERBOSE"].map((level) => `log("at ${level}", pb_utils.Logger.${level})`);
  await using loaded = await fixture.load(
    "levels",
    model(["log = pb_utils.Logger.log", 'log("plain")', ...lines, echo].join("\n")),
  );
  await infer(loaded, [floats("IN", [1])]);
  const written = ["info: plain", "info: at INFO", "warning: at WARNING", "error: at ERROR", "verbose: at VERBOSE"];
  await until(() => written.every((line) => fixture.log.includes(line)));
});

test("every public name of triton_python_backend_utils exists and can be compared with", async () => {
  const source = model(
    `assert not isinstance(requests[0], pb_utils.InferenceTrace)
assert requests[0].inputs()[0].shape() == [1] and requests[0].requested_output_names() == {"OUT"}
assert pb_utils.TRITON_STRING_TO_NUMPY["TYPE_BOOL"] is bool
assert (pb_utils.TRITONSERVER_MEMORY_GPU, pb_utils.TRITONSERVER_MEMORY_CPU) == (0, 1)
${echo}`,
    "    def count(self, family: pb_utils.MetricFamily) -> pb_utils.InferenceResponseSender: pass\n",
  );
  await using loaded = await fixture.load("looks", source);
  assert.deepEqual(floatsOf((await infer(loaded, [floats("IN", [1])])).outputs[0]!), [1]);
});

test("megabytes of output are limited in the log and block nothing", async () => {
  await using loaded = await fixture.load(
    "prints",
    model(`print("x" * 5_000_000)\nprint("line\\n" * 1_000_000)\n${echo}`),
  );
  const linesBefore = fixture.log.length;
  assert.deepEqual(floatsOf((await infer(loaded, [floats("IN", [1])])).outputs[0]!), [1]);
  await until(() => fixture.log.slice(linesBefore).some((line) => /^printed: \.\.\. \d+ lines .* omitted/.test(line)));
  assert.ok(fixture.log.length - linesBefore < 100_000);
});

test("load errors have the model's own message and leave no process", async () => {
  const lifecycle = (method: string) => `${header}class TritonPythonModel:\n    ${method}\n`;
  const cases: [string, string, RegExp][] = [
    [
      "initraise",
      lifecycle('def initialize(self, args): raise RuntimeError("no weights")\n    def execute(self, r): pass'),
      /^RuntimeError: no weights\n\nAt:\n {2}\/.*\/initraise\/1\/model\.py\(4\): initialize\n$/,
    ],
    ["noclass", "x = 1\n", /^AttributeError: module '1\.model' has no attribute 'TritonPythonModel'$/],
    ["syntax", "def x(\n", /^SyntaxError: '\(' was never closed \(model\.py, line 1\)$/],
    ["noexecute", lifecycle("pass"), /Python model \/.*model\.py does not implement `execute` method\./],
    [
      "inithuge",
      lifecycle('def initialize(self, args): raise RuntimeError("x" * 70_000_000)\n    def execute(self, r): pass'),
      /^RuntimeError: x{65000}/,
    ],
    [
      "initexit",
      lifecycle("def initialize(self, args):\n        import os; os._exit(9)\n    def execute(self, r): pass"),
      /^Stub process 'initexit_0' is not healthy\. \(exit code 9\)$/,
    ],
  ];
  for (const [name, source, message] of cases)
    await assert.rejects(fixture.load(name, source), { code: "INTERNAL", message });
  assert.equal(fixture.arena.usedBytes, 0);
});

test("initialize gets Triton's arguments, all of them strings, and finalize runs at unload", async () => {
  const source = `${header}import json
class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args.pop("model_config"))
        print(json.dumps(args), config["name"], all(type(v) is str for v in args.values()))
    def execute(self, requests):
        ${echo}
    def finalize(self):
        print("goodbye")
`;
  const loaded = await fixture.load("arguments", source);
  const pid = pidOf(loaded);
  await loaded[Symbol.asyncDispose]();
  const line = fixture.log.find((one) => one.includes('"model_instance_name": "arguments_0"'));
  assert.match(
    line!,
    /"model_instance_kind": "CPU".*"model_instance_device_id": "0".*"model_version": "1", "model_name": "arguments"} arguments True$/,
  );
  assert.ok(fixture.log.includes("printed: goodbye"));
  assert.equal(readProcessStart(pid), null);
});

test("a model configured for a GPU sees KIND_CPU without one, and the log has a warning", async () => {
  const group = "instance_group [{ kind: KIND_GPU count: 1 }]";
  const source = model(echo, "    def initialize(self, args): print('kind', args['model_instance_kind'])\n");
  await using loaded = await fixture.load("eager", source, oneInOneOut("TYPE_FP32", group));
  assert.deepEqual(floatsOf((await infer(loaded, [floats("IN", [1])])).outputs[0]!), [1]);
  await until(() => fixture.log.includes("printed: kind CPU"));
  assert.ok(
    fixture.log.includes(
      "warning: model 'eager' requests KIND_GPU; its instances run on the CPU, and the model receives KIND_CPU",
    ),
  );
});

test("auto_complete_config completes the configuration, its worker becomes the first instance, and its exceptions are load errors", async () => {
  const complete = (body: string) => `import os\n${header}class TritonPythonModel:
    @staticmethod
    def auto_complete_config(config):
        ${body}
        return config
    def execute(self, requests):
        ${echo}
`;
  const full = complete(
    'config.set_max_batch_size(4); config.set_dynamic_batching(); config.add_input({"name": "IN", "data_type": "TYPE_FP32", "dims": [-1]}); config.add_output({"name": "OUT", "data_type": "TYPE_FP32", "dims": [-1]}); print("completed by", os.getpid())',
  );
  const config = await fixture.complete("completes", full, 'backend: "python"');
  assert.deepEqual([config.maxBatchSize, config.scheduling.kind, config.inputs[0]!.name], [4, "dynamic", "IN"]);
  await using loaded = await fixture.load("completes", full, 'backend: "python"');
  assert.equal(loaded.instances.length, 1);
  await until(() => fixture.log.includes(`printed: completed by ${pidOf(loaded)}`));
  await assert.rejects(
    fixture.load("conflict", complete("config.set_max_batch_size(2)"), oneInOneOut("TYPE_FP32", "max_batch_size: 8")),
    {
      message:
        /^ValueError: configuration specified max_batch_size 8, but in auto-complete-config function for model 'conflict' specified max_batch_size 2\n/,
    },
  );
  const wrong: [string, string, RegExp][] = [
    ["anarray", "np.array([4])", /^TypeError: Object of type ndarray is not JSON serializable\n\nAt:\n/],
    ["numpyscalar", "[np.int64(4)]", /^TypeError: Object of type int64 is not JSON serializable\n\nAt:\n/],
    ["nonumber", "[float('nan')]", /^ValueError: Out of range float values are not JSON compliant/],
  ];
  for (const [name, dims, message] of wrong) {
    const body = `config.add_input({"name": "IN", "data_type": "TYPE_FP32", "dims": ${dims}})`;
    await assert.rejects(fixture.complete(name, complete(body), 'backend: "python"'), {
      code: "INTERNAL",
      message,
    });
  }
});

test("the memory of a loaded model is that of its workers only", async () => {
  await using loaded = await fixture.load("memory", addSubModel, addSubConfig);
  const bytes = (await loaded.memoryBytes()).get("machine")!;
  assert.ok(bytes > 500_000 && bytes < 6_000_000, `${bytes} bytes`);
});
