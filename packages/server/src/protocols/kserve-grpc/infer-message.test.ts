import assert from "node:assert/strict";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import * as fc from "fast-check";
import { ByteBudget, ByteLease } from "@galatea/base";
import { FakeArena } from "../fake-arena.ts";
import { GrpcError } from "../grpc-listener/index.ts";
import { InferTensorContentsSchema, ModelInferRequestSchema } from "./gen/grpc_service_pb.js";
import { InferMessageReader, type InferMessage } from "./infer-message.ts";

const parameter = fc.oneof(
  fc.boolean().map((value) => ({ case: "boolParam" as const, value })),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map((value) => ({ case: "int64Param" as const, value })),
  fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map((value) => ({ case: "uint64Param" as const, value })),
  fc.string({ unit: "binary" }).map((value) => ({ case: "stringParam" as const, value })),
  fc.double({ noNaN: true }).map((value) => ({ case: "doubleParam" as const, value })),
);
const parameters = fc
  .array(fc.tuple(fc.string(), parameter), { maxLength: 3 })
  .map((entries) => Object.fromEntries(entries.map(([name, parameterChoice]) => [`p${name}`, { parameterChoice }])));
const shape = fc.array(fc.bigInt({ min: 0n, max: 2n ** 40n }), { maxLength: 4 });

const contents = fc.option(
  fc.record({
    uintContents: fc.array(fc.nat(), { maxLength: 20 }),
    bytesContents: fc.array(fc.uint8Array({ maxLength: 40 }), { maxLength: 3 }),
  }),
  { nil: undefined },
);

const requests = fc.record({
  modelName: fc.string({ unit: "grapheme" }),
  modelVersion: fc.string(),
  id: fc.string({ unit: "grapheme" }),
  parameters,
  inputs: fc.array(fc.record({ name: fc.string(), datatype: fc.string(), shape, parameters, contents }), {
    maxLength: 3,
  }),
  outputs: fc.array(fc.record({ name: fc.string(), parameters }), { maxLength: 3 }),
  rawInputContents: fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 4 }),
});

const arenaOf = (bytes: number) => new FakeArena(bytes, new ByteBudget(Infinity));

/** Reads `bytes` in chunks that end at `cuts`. */
function read(bytes: Uint8Array, cuts: readonly number[], arena: FakeArena): InferMessage {
  let message: InferMessage | null = null;
  const reader = new InferMessageReader({
    byteLength: bytes.length,
    memory: new ByteLease(new ByteBudget(Infinity)),
    arenaOf: () => arena,
    done: (read) => (message = read),
  });
  try {
    const ends = [...new Set([...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length])].sort((a, b) => a - b);
    let at = 0;
    for (const end of ends) {
      const chunk = Buffer.from(bytes.slice(at, end));
      reader.write(chunk);
      // Overwrites the chunk, because the connection reuses its buffer for the next read.
      chunk.fill(0xa5);
      at = end;
    }
    reader.end();
    return message!;
  } finally {
    reader.release();
  }
}

const plainParameters = (map: InferMessage["parameters"]) =>
  Object.fromEntries([...map].map(([name, each]) => [name, each.kind === "none" ? null : [each.kind, each.value]]));

test("a message that arrives in arbitrary chunks is read as it was written", () => {
  fc.assert(
    fc.property(requests, fc.array(fc.nat()), (request, cuts) => {
      const arena = arenaOf(2 ** 20);
      const message = read(toBinary(ModelInferRequestSchema, create(ModelInferRequestSchema, request)), cuts, arena);
      const snake = (name: string) => name.replace("Param", "_param");
      const expected = (value: typeof request.parameters) =>
        Object.fromEntries(
          Object.entries(value).map(([name, { parameterChoice }]) => [
            name,
            [snake(parameterChoice.case), parameterChoice.value],
          ]),
        );
      assert.equal(message.modelName, request.modelName);
      assert.equal(message.modelVersion, request.modelVersion);
      assert.equal(message.id, request.id);
      assert.deepEqual(plainParameters(message.parameters), expected(request.parameters));
      assert.deepEqual(
        message.inputs.map((input) => [input.name, input.datatype, input.shape, plainParameters(input.parameters)]),
        request.inputs.map((input) => [
          input.name,
          input.datatype,
          input.shape.map(Number),
          expected(input.parameters),
        ]),
      );
      assert.deepEqual(
        message.inputs.map((input) =>
          Buffer.concat(input.contents.map(({ bytes, at, end }) => bytes.subarray(at, end))),
        ),
        request.inputs.map((input) =>
          Buffer.from(toBinary(InferTensorContentsSchema, create(InferTensorContentsSchema, input.contents ?? {}))),
        ),
      );
      assert.deepEqual(
        message.outputs.map((output) => [output.name, plainParameters(output.parameters)]),
        request.outputs.map((output) => [output.name, expected(output.parameters)]),
      );
      assert.deepEqual(
        message.raw.map(({ bytes }) => Buffer.from(bytes).toString("hex")),
        request.rawInputContents.map((bytes) => Buffer.from(bytes).toString("hex")),
      );
      for (const { block } of message.raw) block?.release();
      assert.equal(arena.usedBytes, 0);
    }),
  );
});

test("invalid bytes, and messages with flipped bytes, are rejected or read, and leave nothing in the arena", () => {
  const broken = fc.oneof(
    fc.uint8Array({ maxLength: 200 }),
    fc
      .tuple(requests, fc.array(fc.tuple(fc.nat(), fc.nat(255)), { minLength: 1, maxLength: 4 }))
      .map(([request, flips]) => {
        const bytes = toBinary(
          ModelInferRequestSchema,
          create(ModelInferRequestSchema, { ...request, modelName: "m" }),
        );
        for (const [at, value] of flips) if (bytes.length > 0) bytes[at % bytes.length] = value;
        return bytes;
      }),
  );
  fc.assert(
    fc.property(broken, fc.array(fc.nat(), { maxLength: 6 }), (bytes, cuts) => {
      const arena = arenaOf(2 ** 20);
      try {
        for (const { block } of read(bytes, cuts, arena).raw) block?.release();
      } catch (error) {
        assert.ok(error instanceof GrpcError, String(error));
      }
      assert.equal(arena.usedBytes, 0);
    }),
    { numRuns: 2000 },
  );
});

test("a field that claims to be longer than its message takes no memory", () => {
  const arena = arenaOf(2 ** 40);
  // model_name "m", then raw_input_contents of 4 GiB.
  const lying = Buffer.from([0x0a, 1, 0x6d, 0x3a, 0xff, 0xff, 0xff, 0xff, 0x0f]);
  assert.throws(() => read(lying, [], arena), { status: "INTERNAL", message: /longer than the message/ });
  assert.equal(arena.usedBytes, 0);
});

test("a message with too many entries is rejected", () => {
  const outputs = Buffer.alloc(2 * 200_000);
  for (let at = 0; at < outputs.length; at += 2) outputs[at] = 0x32;
  assert.throws(() => read(outputs, [], arenaOf(0)), { status: "INVALID_ARGUMENT" });
});
