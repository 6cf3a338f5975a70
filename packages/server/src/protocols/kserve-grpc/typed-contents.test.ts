import assert from "node:assert/strict";
import { test } from "node:test";
import { create, toBinary, type MessageInitShape } from "@bufbuild/protobuf";
import * as fc from "fast-check";
import { joinBytesElements, type Datatype } from "../../tensor/index.ts";
import { GrpcError } from "../grpc-listener/index.ts";
import { InferTensorContentsSchema } from "./gen/grpc_service_pb.js";
import { fillTyped, findContents, typedByteLength } from "./typed-contents.ts";

function filled(bytes: Uint8Array, datatype: Datatype): Uint8Array {
  const buffer = Buffer.from(bytes);
  const [contents] = complete(findContents([{ bytes: buffer, at: 0, end: buffer.length }]));
  if (contents === undefined) return new Uint8Array(0);
  const into = new Uint8Array(typedByteLength(contents, datatype));
  complete(fillTyped(contents, datatype, into));
  return into;
}

const asMessage = (init: MessageInitShape<typeof InferTensorContentsSchema>) =>
  toBinary(InferTensorContentsSchema, create(InferTensorContentsSchema, init));

function complete<Value>(chunks: Generator<void, Value>): Value {
  let chunk = chunks.next();
  while (chunk.done !== true) chunk = chunks.next();
  return chunk.value;
}

test("integers of every width are decoded as they were encoded", () => {
  fc.assert(
    fc.property(
      fc.array(fc.maxSafeInteger()),
      fc.array(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })),
      (small, large) => {
        const int32 = Int32Array.from(small.map((value) => value | 0));
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

test("booleans, floats and strings are decoded as they were encoded", () => {
  assert.deepEqual(filled(asMessage({ boolContents: [true, false, true] }), "BOOL"), Uint8Array.of(1, 0, 1));
  const fp32 = Float32Array.of(1.5, -0, NaN);
  assert.deepEqual(filled(asMessage({ fp32Contents: [...fp32] }), "FP32"), new Uint8Array(fp32.buffer));
  const fp64 = Float64Array.of(0.1, -1e300);
  assert.deepEqual(filled(asMessage({ fp64Contents: [...fp64] }), "FP64"), new Uint8Array(fp64.buffer));
  const uint32 = Uint32Array.of(0, 2 ** 32 - 1);
  assert.deepEqual(filled(asMessage({ uintContents: [...uint32] }), "UINT32"), new Uint8Array(uint32.buffer));
  const texts = ["", "a", "x".repeat(300)].map((text) => Buffer.from(text));
  assert.deepEqual(filled(asMessage({ bytesContents: texts }), "BYTES"), joinBytesElements(texts));
});

test("of several content fields the one with the lowest number is used, and a field without elements is ignored", () => {
  const bytes = Buffer.concat([
    asMessage({ fp64Contents: [1] }),
    asMessage({ intContents: [1, 2] }),
    // A packed field of no elements.
    Buffer.from([0x0a, 0]),
    asMessage({ bytesContents: [Buffer.from("x")] }),
  ]);
  const found = complete(findContents([{ bytes, at: 0, end: bytes.length }]));
  assert.deepEqual(
    found.map(({ field, elementCount }) => [field.kind, elementCount]),
    [
      ["int32", 2],
      ["fp64", 1],
      ["bytes", 1],
    ],
  );
});

test("a packed field that ends within an element is rejected as invalid protobuf", () => {
  const cut = Buffer.from([0x32, 5, 0, 0, 0, 0, 0]);
  assert.throws(() => complete(findContents([{ bytes: cut, at: 0, end: cut.length }])), GrpcError);
});

test("unpacked elements are read like packed ones", () => {
  // Two elements of fp32_contents, each with its own key. Then elements 5 and -1 of int_contents as two varints.
  const floats = Buffer.from([0x35, 0, 0, 0x80, 0x3f, 0x35, 0, 0, 0, 0x40]);
  assert.deepEqual(filled(floats, "FP32"), new Uint8Array(new Float32Array([1, 2]).buffer));
  const ints = Buffer.from([0x10, 5, 0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1]);
  assert.deepEqual(filled(ints, "INT32"), new Uint8Array(new Int32Array([5, -1]).buffer));
});

test("any bytes are rejected as invalid protobuf, or decoded to a tensor of the reported length", () => {
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
        for (const contents of complete(findContents([{ bytes: buffer, at: 0, end: buffer.length }]))) {
          const datatype = datatypes[contents.field.kind]!;
          complete(fillTyped(contents, datatype, new Uint8Array(typedByteLength(contents, datatype))));
        }
      } catch (error) {
        assert.ok(error instanceof GrpcError, String(error));
      }
    }),
    { numRuns: 5000 },
  );
});

test("a packed field that ends inside a number is rejected before anything is written", () => {
  // A packed field bool_contents that contains 1 and the start of a varint. The varint would continue in the next field.
  const cut = Buffer.from([0x0a, 2, 1, 0x80, 0x0a, 1, 1]);
  assert.throws(() => filled(cut, "BOOL"), { name: "GrpcError", message: /a packed field is cut off/ });
});
