import assert from "node:assert/strict";
import { test } from "node:test";
import { create, toBinary } from "@bufbuild/protobuf";
import * as fc from "fast-check";
import type { Datatype } from "../../tensor/index.ts";
import { GrpcError } from "../grpc-listener/index.ts";
import { InferTensorContentsSchema } from "./gen/grpc_service_pb.js";
import { fillTyped, findContents, typedByteLength } from "./typed-contents.ts";

function filled(bytes: Uint8Array, datatype: Datatype): Uint8Array {
  const buffer = Buffer.from(bytes);
  const [contents] = findContents([{ bytes: buffer, at: 0, end: buffer.length }]);
  if (contents === undefined) return new Uint8Array(0);
  const into = new Uint8Array(typedByteLength(contents, datatype));
  fillTyped(contents, datatype, into);
  return into;
}

test("integers of every width come out as they were put in", () => {
  fc.assert(
    fc.property(
      fc.array(fc.maxSafeInteger()),
      fc.array(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })),
      (small, large) => {
        const int32 = Int32Array.from(small.map((value) => value | 0));
        const asMessage = (init: object) =>
          toBinary(InferTensorContentsSchema, create(InferTensorContentsSchema, init as never));
        assert.deepEqual(filled(asMessage({ intContents: [...int32] }), "INT32"), new Uint8Array(int32.buffer));
        const int8 = Int8Array.from(int32);
        assert.deepEqual(filled(asMessage({ intContents: [...int8] }), "INT8"), new Uint8Array(int8.buffer));
        const uint16 = Uint16Array.from(int32);
        assert.deepEqual(filled(asMessage({ uintContents: [...uint16] }), "UINT16"), new Uint8Array(uint16.buffer));
        const int64 = BigInt64Array.from(large);
        assert.deepEqual(filled(asMessage({ int64Contents: large }), "INT64"), new Uint8Array(int64.buffer));
        const uint64 = BigUint64Array.from(large);
        assert.deepEqual(filled(asMessage({ uint64Contents: [...uint64] }), "UINT64"), new Uint8Array(uint64.buffer));
      },
    ),
  );
});

test("elements that are not packed are read as packed ones are", () => {
  // fp32_contents, twice with a key of its own; int_contents 5 and -1 as two varints.
  const floats = Buffer.from([0x35, 0, 0, 0x80, 0x3f, 0x35, 0, 0, 0, 0x40]);
  assert.deepEqual(filled(floats, "FP32"), new Uint8Array(new Float32Array([1, 2]).buffer));
  const ints = Buffer.from([0x10, 5, 0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]);
  assert.deepEqual(filled(ints, "INT32"), new Uint8Array(new Int32Array([5, -1]).buffer));
});

test("any bytes are refused as no protobuf, or give a tensor of the length that was told", () => {
  const datatypes: Readonly<Record<string, Datatype>> = {
    bool: "BOOL",
    int32: "INT8",
    int64: "INT64",
    uint32: "UINT16",
    uint64: "UINT64",
    fp32: "FP32",
    fp64: "FP64",
    bytes: "BYTES",
  };
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (bytes) => {
      const buffer = Buffer.from(bytes);
      try {
        for (const contents of findContents([{ bytes: buffer, at: 0, end: buffer.length }])) {
          const datatype = datatypes[contents.field.kind]!;
          fillTyped(contents, datatype, new Uint8Array(typedByteLength(contents, datatype)));
        }
      } catch (error) {
        assert.ok(error instanceof GrpcError, String(error));
      }
    }),
    { numRuns: 5000 },
  );
});
