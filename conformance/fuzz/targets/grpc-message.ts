import assert from "node:assert/strict";
import * as fc from "fast-check";
import { ByteBudget, ByteLease, InferenceError, systemClock } from "@galatea/base";
import type { ServedModel } from "@galatea/server/engine";
import { FakeArena } from "../../../packages/server/src/protocols/fake-arena.ts";
import { FakeEngine } from "../../../packages/server/src/protocols/fake-engine.ts";
import { GrpcError } from "@galatea/server/protocols/grpc-listener";
import {
  InferMessageReader,
  type InferMessage,
} from "../../../packages/server/src/protocols/kserve-grpc/infer-message.ts";
import { decodeInferRequest } from "../../../packages/server/src/protocols/kserve-grpc/infer-request.ts";
import { releaseTensors } from "@galatea/server/tensor";
import { inferMessages } from "../infer-messages.ts";
import { chunks } from "../mutations.ts";
import type { FuzzTarget } from "../target.ts";

const memoryBytes = 256 * 1024 * 1024;
/** Memory of a message in addition to its tensors: each entry of a few bytes becomes an object, which is charged. */
const takenBytesMax = 256 * 1024;

interface Input {
  readonly bytes: Buffer;
  readonly cuts: readonly number[];
}

/** Parses ModelInferRequest from chunks to a request with tensors, without a connection. */
export const grpcMessage: FuzzTarget<Input> = {
  name: "grpc-message",
  about: "ModelInferRequest as protobuf, in chunks of any size",
  share: 0.2,
  inputs: fc.record({ bytes: inferMessages, cuts: fc.array(fc.nat(), { maxLength: 4 }) }),
  open: () => {
    const engine = new FakeEngine();
    engine.add("echo", { inputs: { IN: ["FP32", [-1]] }, outputs: { OUT: ["FP32", [-1]] }, run: () => [] });
    const model = engine.open({ namespace: "", modelName: "echo", modelVersion: "" });
    const attempt = (input: Input) => read(input, model);
    return Promise.resolve({ attempt, [Symbol.asyncDispose]: () => Promise.resolve(model[Symbol.dispose]()) });
  },
};

function read({ bytes, cuts }: Input, served: ServedModel): boolean {
  const budget = new ByteBudget(memoryBytes);
  const arena = new FakeArena(memoryBytes, budget);
  const memory = new ByteLease(budget);
  let isUsed = false;
  const model = { ...served, arena };
  const reader = new InferMessageReader({
    byteLength: bytes.length,
    memory,
    arenaOf: () => arena,
    done: (message) => decode(message, model),
  });
  try {
    for (const chunk of chunks(bytes, cuts)) {
      reader.write(chunk);
      assert.ok(budget.usedBytes <= takenBytesMax, `${budget.usedBytes} bytes for a message of ${bytes.length}`);
    }
    reader.end();
    isUsed = true;
  } catch (error) {
    if (!(error instanceof GrpcError) && !(error instanceof InferenceError)) throw error;
  } finally {
    reader.release();
    memory[Symbol.dispose]();
  }
  assert.deepEqual([arena.usedBytes, budget.usedBytes], [0, 0]);
  return isUsed;
}

function decode(message: InferMessage, model: ServedModel): void {
  const { signal } = new AbortController();
  const options = { model, signal, clock: systemClock, receivedNs: 0, forwarded: { rawHeaders: [], pattern: null } };
  const { request } = decodeInferRequest(message, options);
  for (const { data, shape } of request.inputs) {
    assert.ok(shape.every((dimension) => Number.isSafeInteger(dimension) && dimension >= 0));
    assert.ok(data.length <= 16 * 1024);
  }
  releaseTensors(request.inputs);
}
