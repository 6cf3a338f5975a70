import assert from "node:assert/strict";
import * as fc from "fast-check";
import { ByteBudget, ByteLease, InferenceError } from "@galatea/base";
import { FakeArena } from "../../../packages/server/src/protocols/fake-arena.ts";
import {
  leadingInteger,
  parseInferHeader,
  placeInputs,
  placeRawInput,
  viewTail,
  type InputPlacementOptions,
} from "@galatea/server/protocols/infer-codec";
import { completeConfig, parseConfigText } from "@galatea/server/modelconfig";
import { datatypes, JsonScanner, releaseTensors } from "@galatea/server/tensor";
import { inferBodies, type InferBody } from "../infer-bodies.ts";
import { chunks } from "../mutations.ts";
import type { FuzzTarget } from "../target.ts";

const memoryBytes = 256 * 1024 * 1024;
const inputBytesMax = 1024 * 1024;
/** Tensors take at most this multiple of the bytes of their text or tail, in addition to their alignment. */
const bytesPerByteMax = 16;

const rawConfigs = [
  ["TYPE_FP32", "[ -1 ]", 0],
  ["TYPE_STRING", "[ 1 ]", 4],
  ["TYPE_INT8", "[ 2, -1, 3 ]", 0],
  ["TYPE_INT64", "[ -1, -1 ]", 0],
].map(([type, dims, batch]) =>
  completeConfig(
    parseConfigText(
      `backend: "python" max_batch_size: ${batch} input { name: "IN" data_type: ${type} dims: ${dims} } output { name: "OUT" data_type: ${type} dims: ${dims} }`,
      "config.pbtxt",
    ),
    { directoryName: "m", servedName: "m", versionEntries: ["model.py"], gpuCount: 0 },
  ),
);

interface Input {
  readonly body: InferBody;
  readonly cuts: readonly number[];
  readonly raw: number;
}

/** Tests the JSON reader, binary tails and raw bodies, without a socket. */
export const httpBody: FuzzTarget<Input> = {
  name: "http-body",
  about: "inference bodies over HTTP: JSON, binary tails in chunks of any size, raw bodies",
  share: 0.3,
  inputs: fc.record({
    body: inferBodies,
    cuts: fc.array(fc.nat(), { maxLength: 4 }),
    raw: fc.nat(rawConfigs.length - 1),
  }),
  open: () => Promise.resolve({ attempt, [Symbol.asyncDispose]: () => Promise.resolve() }),
};

function attempt({ body: { bytes, headerText }, cuts, raw }: Input): boolean {
  const budget = new ByteBudget(memoryBytes);
  const arena = new FakeArena(memoryBytes, budget);
  const memory = new ByteLease(budget);
  const stated = headerText === null ? bytes.length : (leadingInteger(headerText) ?? bytes.length);
  const headerBytes = stated < 0 || stated > bytes.length ? bytes.length : stated;
  const isUsed = refusing(() => {
    if (headerBytes === 0) return placeRaw(bytes, arena, raw);
    const tail = bytes.subarray(headerBytes);
    const header = parseInferHeader(new JsonScanner(bytes.subarray(0, headerBytes)), inputBytesMax, memory);
    const options: InputPlacementOptions = {
      modelName: "m",
      tailBytes: tail.length,
      arena,
      memory,
    };
    const placed = placeInputs(header, options);
    for (const chunk of chunks(tail, cuts)) placed.tail.write(chunk);
    assert.ok(arena.usedBytes <= bytes.length * bytesPerByteMax + header.inputs.length * 64);
    const viewed = viewTail(header, tail, { ...options, arena: null });
    for (const [index, tensor] of placed.tensors.entries()) {
      const { binaryBytes, dataAt, elementCount, datatype } = header.inputs[index]!;
      assert.deepEqual(Buffer.from(tensor.data), Buffer.from(viewed[index]!.data));
      // A size may be written as -0.
      if (dataAt === -1) assert.ok(tensor.data.length === binaryBytes);
      else if (datatype !== "BYTES") assert.ok(tensor.data.length === elementCount * datatypes[datatype].byteSize);
    }
    releaseTensors(placed.tensors);
  });
  memory[Symbol.dispose]();
  assert.deepEqual([arena.usedBytes, budget.usedBytes], [0, 0]);
  return isUsed;
}

function placeRaw(bytes: Buffer, arena: FakeArena, raw: number): void {
  const { into, tensor } = placeRawInput(rawConfigs[raw]!, bytes.length, arena);
  assert.equal(into.length, bytes.length);
  releaseTensors([tensor]);
}

/** A client's input may be rejected; any other exception is a defect. */
function refusing(work: () => void): boolean {
  try {
    work();
    return true;
  } catch (error) {
    if (!(error instanceof InferenceError)) throw error;
    return false;
  }
}
