/** A model may write to its inputs: no other reader sees the change, and an input with a single reader is not copied. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { InferenceError } from "@galatea/base";
import { releaseResponse, type InferenceResponse } from "../../inference/index.ts";
import type { Tensor } from "../../tensor/index.ts";
import type { LoadedModel } from "../backend.ts";
import {
  infer,
  echo,
  floats,
  floatsOf,
  inArena,
  model,
  oneInOneOut,
  only,
  openFixture,
  request,
  tensor,
  until,
  type PythonFixture,
} from "./python-fixture.ts";

let fixture: PythonFixture;

before(async () => {
  fixture = await openFixture();
});

after(() => fixture[Symbol.asyncDispose]());

const count = 50_000;
const ones = () =>
  floats(
    "IN",
    Array.from({ length: count }, () => 1),
  );
const values = (tensors: readonly Tensor[]) => tensors.map((one) => [...new Set(floatsOf(one))]);

/** Overwrites all of its input. The response is the sum of the values that it read before. */
const spoils = model(`answers = []
for r in requests:
    x = r.inputs()[0].as_numpy()
    answers.append(np.array([x.sum()], np.float32))
    x /= 255
return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", a)]) for a in answers]`);

test("a model that writes to its input changes it for no other reader", async () => {
  await using loaded = await fixture.load("spoils", spoils);
  const input = inArena(fixture.arena, ones());
  input.block!.retain(); // Simulates an ensemble with another step that reads the input.
  for (let round = 0; round < 2; round++)
    assert.deepEqual(floatsOf((await infer(loaded, [input])).outputs[0]!), [count], `round ${round}`);
  assert.deepEqual(values([input]), [[1]]);
  input.block!.release();
  input.block!.release();
  await until(() => fixture.arena.usedBytes === 0);
});

test("a model that is the only reader of its input writes to it in place", async () => {
  await using loaded = await fixture.load("alone", spoils);
  const input = inArena(fixture.arena, ones());
  await infer(loaded, [input]);
  assert.notDeepEqual(values([input]), [[1]]);
  input.block!.release();
});

test("two requests of one batch over the same bytes do not see each other's writes", async () => {
  await using loaded = await fixture.load("batch", spoils);
  const input = inArena(fixture.arena, ones());
  input.block!.retain();
  const { outcomes } = await only(loaded).execute([request([input]), request([input])]);
  assert.deepEqual(
    outcomes.map((one) => floatsOf((one as InferenceResponse).outputs[0]!)),
    [[count], [count]],
  );
  assert.deepEqual(values([input]), [[1]]);
  input.block!.release();
  input.block!.release();
});

test("two inputs of one request over the same bytes do not see each other's writes", async () => {
  const body = `a, b = (t.as_numpy() for t in requests[0].inputs())
a[:] = 7
return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", b)])]`;
  const config = `backend: "python" input [{ name: "A" data_type: TYPE_FP32 dims: [ -1 ] }, { name: "B" data_type: TYPE_FP32 dims: [ -1 ] }]
    output [{ name: "OUT" data_type: TYPE_FP32 dims: [ -1 ] }]`;
  await using loaded = await fixture.load("pair", model(body), config);
  const input = inArena(fixture.arena, ones());
  input.block!.retain();
  const response = await infer(loaded, [
    { ...input, name: "A" },
    { ...input, name: "B" },
  ]);
  assert.deepEqual(values(response.outputs), [[1]]);
  releaseResponse(response);
  input.block!.release();
  input.block!.release();
});

test("parts of one block are reference-counted separately: the only reader of a part owns it", async () => {
  await using loaded = await fixture.load("parts", spoils);
  const complete = inArena(fixture.arena, ones()).block!;
  const half = (at: number): Tensor => {
    const block = complete.segment(at, complete.byteLength / 2);
    return { ...ones(), shape: [count / 2], data: block.bytes, block };
  };
  const first = half(0);
  const second = half(complete.byteLength / 2);
  complete.release();
  await infer(loaded, [first]);
  assert.notDeepEqual(values([first]), [[1]], "written where it lies");
  assert.deepEqual(values([second]), [[1]]);
  first.block!.release();
  second.block!.release();
  await until(() => fixture.arena.usedBytes === 0);
});

/** Returns its input and keeps a reference to it, created by the expression `kept`. The next call writes to the kept reference. */
const keepsWhat = (kept: string) =>
  model(`if getattr(self, "kept", None) is not None: self.kept[:] = 99
t = requests[0].inputs()[0]
self.kept = ${kept}
return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", t.as_numpy())])]`);

for (const [what, kept] of [
  ["the array", "t.as_numpy()"],
  ["a view of a part of it", "t.as_numpy()[5:7]"],
  ["an array over its DLPack capsule", "np.from_dlpack(t)"],
] as const) {
  test(`a response does not change when the model writes to a kept input: ${what}`, async () => {
    await using loaded = await fixture.load("keeps", keepsWhat(kept));
    const input = inArena(fixture.arena, ones());
    const response = await infer(loaded, [input]);
    assert.notEqual(response.outputs[0]!.block, input.block);
    input.block!.release();
    const next = inArena(fixture.arena, ones());
    releaseResponse(await infer(loaded, [next]));
    next.block!.release();
    assert.deepEqual(values(response.outputs), [[1]]);
    releaseResponse(response);
  });
}

test("a thread that keeps writing to the input does not change the response", async () => {
  // A call with one element returns after the thread has written twice during the call.
  const body = `import threading, time
x = requests[0].inputs()[0].as_numpy()
answer = pb_utils.InferenceResponse([pb_utils.Tensor("OUT", x)])
if len(x) == 1:
    until = self.rounds + 2
    while self.rounds < until: time.sleep(0.0005)
    return [answer]
self.rounds = 0
def spoil(x):
    while True:
        time.sleep(0.0005)
        x += 1
        self.rounds += 1
threading.Thread(target=spoil, args=(x,), daemon=True).start()
return [answer]`;
  await using loaded = await fixture.load("threaded", model(body));
  const input = inArena(fixture.arena, ones());
  const response = await infer(loaded, [input]);
  input.block!.release();
  const responseCount = values(response.outputs);
  await infer(loaded, [floats("IN", [1])]);
  assert.deepEqual(values(response.outputs), responseCount);
  releaseResponse(response);
});

test("an input that is passed on unread is not copied, shared or not, and may be written to afterwards", async () => {
  const body = `t = requests[0].inputs()[0]
t._name = "OUT"
self.kept = t if len(requests[0].parameters()) > 2 else None
answer = pb_utils.InferenceResponse([t])
return [answer]`;
  await using loaded = await fixture.load("unread", model(body));
  const input = inArena(fixture.arena, ones());
  const alone = await infer(loaded, [input]);
  assert.equal(alone.outputs[0]!.block, input.block);
  const shared = await infer(loaded, [input]);
  assert.equal(shared.outputs[0]!.block, input.block);
  for (const response of [alone, shared]) releaseResponse(response);
  input.block!.release();
  await until(() => fixture.arena.usedBytes === 0);
});

for (const [datatype, numbers] of [
  ["FP32", "np.from_dlpack(t)"],
  ["BF16", "np.from_dlpack(Plain(t.to_dlpack()))"],
] as const) {
  test(`a DLPack export of ${datatype} is owned by the model as well`, async () => {
    const body = `import ctypes
class Plain:
    def __init__(self, capsule):
        self.capsule = capsule
        get = ctypes.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
        ctypes.c_uint8.from_address(get(capsule, b"dltensor") + 20).value = 1
    def __dlpack__(self, **_): return self.capsule
    def __dlpack_device__(self): return (1, 0)
t = requests[0].inputs()[0]
x = ${numbers}
ctypes.memset(x.ctypes.data, 0, x.nbytes)
return [pb_utils.InferenceResponse([pb_utils.Tensor.from_dlpack("OUT", t.to_dlpack())])]`;
    const name = `dlpack_${datatype.toLowerCase()}`;
    await using loaded = await fixture.load(name, model(body), oneInOneOut(`TYPE_${datatype}`));
    const data = new Uint8Array(40_000).fill(1);
    const input = inArena(fixture.arena, tensor("IN", datatype, [datatype === "FP32" ? 10_000 : 20_000], data));
    input.block!.retain();
    const response = await infer(loaded, [input]);
    assert.ok(response.outputs[0]!.data.every((byte) => byte === 0));
    assert.ok(input.data.every((byte) => byte === 1));
    releaseResponse(response);
    input.block!.release();
    input.block!.release();
    await until(() => fixture.arena.usedBytes === 0);
  });
}

test("a model may change BYTES arrays, the list of requests and the lists of tensors", async () => {
  const body = `told = []
for r in list(requests):
    t = r.inputs()[0]
    r.inputs().clear()
    texts = t.as_numpy()
    told.append((len(r.inputs()), texts[0]))
    texts[:] = b"gone"
    r.requested_output_names().clear()
answers = [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array([repr(one)], np.object_))]) for one in told]
for a in answers: a.output_tensors().clear()
requests.clear()
return answers`;
  await using loaded = await fixture.load("lists", model(body), oneInOneOut("TYPE_STRING"));
  const element = Buffer.concat([Buffer.from([3, 0, 0, 0]), Buffer.from("abc")]);
  const data = Buffer.concat(Array.from({ length: 2000 }, () => element));
  const input = inArena(fixture.arena, tensor("IN", "BYTES", [2000], data));
  input.block!.retain();
  for (let round = 0; round < 2; round++) {
    const response = await infer(loaded, [input]);
    assert.equal(Buffer.from(response.outputs[0]!.data).subarray(4).toString(), "(1, b'abc')");
  }
  assert.ok(data.equals(input.data));
  input.block!.release();
  input.block!.release();
});

test("an output that cannot be copied from a kept input fails the request, and all memory is released", async () => {
  await using loaded: LoadedModel = await fixture.load("full", keepsWhat("t.as_numpy()"));
  const input = inArena(fixture.arena, ones());
  const rest: { release(): void }[] = [];
  for (const size of [2 ** 26, 2 ** 22, 2 ** 20, count * 4]) {
    for (;;) {
      try {
        rest.push(fixture.arena.allocate(size));
      } catch (error) {
        assert.ok(error instanceof InferenceError);
        break;
      }
    }
  }
  const failing = infer(loaded, [input]);
  await assert.rejects(failing, /shared memory arena is full/);
  for (const block of rest) block.release();
  input.block!.release();
  const next = inArena(fixture.arena, floats("IN", [1, 2]));
  assert.deepEqual(floatsOf((await infer(loaded, [next])).outputs[0]!), [1, 2]);
  next.block!.release();
  await until(() => fixture.arena.usedBytes === 0);
});

test("an echo of an input with one reader returns the input's memory", async () => {
  await using loaded = await fixture.load("echo", model(echo));
  const input = inArena(fixture.arena, ones());
  const response = await infer(loaded, [input]);
  assert.equal(response.outputs[0]!.block, input.block);
  releaseResponse(response);
  input.block!.release();
});

test("inputs that do not fit the arena fail their batch, and reserve no memory", async () => {
  await using loaded = await fixture.load("crowded", model(echo));
  const filling = fixture.arena.allocate(fixture.arena.capacityBytes - 4 * 2 ** 20);
  try {
    const { usedBytes } = fixture.arena;
    const ones = (bytes: number) =>
      floats(
        "IN",
        Array.from({ length: bytes / 4 }, () => 1),
      );
    const batch = [request([ones(2 ** 20)]), request([ones(8 * 2 ** 20)])];
    const { outcomes } = await only(loaded).execute(batch);
    for (const outcome of outcomes) {
      assert.ok(outcome instanceof InferenceError);
      assert.equal(outcome.code, "UNAVAILABLE");
      assert.match(outcome.message, /shared memory arena is full/);
    }
    assert.equal(fixture.arena.usedBytes, usedBytes);
    assert.deepEqual(floatsOf((await infer(loaded, [floats("IN", [5])])).outputs[0]!), [5]);
  } finally {
    filling.release();
  }
});
