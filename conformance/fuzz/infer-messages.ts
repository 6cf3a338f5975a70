import { create, toBinary, type MessageInitShape } from "@bufbuild/protobuf";
import * as fc from "fast-check";
import { ModelInferRequestSchema } from "../../packages/server/src/protocols/kserve-grpc/gen/grpc_service_pb.js";
import { widths } from "./infer-bodies.ts";
import { mutated, rarely } from "./mutations.ts";

const names = fc.constantFrom("IN", "INPUT0", "OUT", "DO", "VALUE", "", "\u{1f600}");
const types = Object.keys(widths).filter((type) => type !== "FP16" && type !== "BF16");
const datatypes = fc.constantFrom(...types, "FP16", "BF16", "FP33", "");
const shapes = fc.oneof(
  { weight: 6, arbitrary: fc.array(fc.bigInt({ min: 0n, max: 5n }), { maxLength: 3 }) },
  { weight: 1, arbitrary: fc.array(fc.constantFrom(-1n, 2n ** 31n, 2n ** 53n, 2n ** 63n - 1n), { maxLength: 3 }) },
);
const choices = fc.oneof(
  fc.boolean().map((value) => ({ case: "boolParam" as const, value })),
  fc.bigInt({ min: -3n, max: 2n ** 63n - 1n }).map((value) => ({ case: "int64Param" as const, value })),
  fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map((value) => ({ case: "uint64Param" as const, value })),
  fc
    .string({ unit: "binary", maxLength: 8 })
    .map((text) => ({ case: "stringParam" as const, value: text.toWellFormed() })),
  fc.double().map((value) => ({ case: "doubleParam" as const, value })),
);
const parameterNames = fc.constantFrom(
  "classification",
  "sequence_id",
  "sequence_start",
  "priority",
  "timeout",
  "binary_data",
  "shared_memory_region",
  "shared_memory_byte_size",
  "triton_enable_empty_final_response",
  "custom",
);
const parameters = fc
  .array(fc.tuple(parameterNames, choices), { maxLength: 3 })
  .map((entries) => Object.fromEntries(entries.map(([name, parameterChoice]) => [name, { parameterChoice }])));
const contents = fc.record(
  {
    boolContents: fc.array(fc.boolean(), { maxLength: 6 }),
    intContents: fc.array(fc.integer(), { maxLength: 6 }),
    int64Contents: fc.array(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), { maxLength: 6 }),
    uintContents: fc.array(fc.nat(), { maxLength: 6 }),
    fp32Contents: fc.array(fc.float(), { maxLength: 6 }),
    fp64Contents: fc.array(fc.double(), { maxLength: 6 }),
    bytesContents: fc.array(fc.uint8Array({ maxLength: 9 }), { maxLength: 6 }),
  },
  { requiredKeys: [] },
);
const shapesOfOne = fc.array(fc.bigInt({ min: 0n, max: 5n }), { maxLength: 3 });
/** The input of the model 'echo'. */
const echoInput = fc.nat(15).map((count) => [{ name: "IN", datatype: "FP32", shape: [BigInt(count)] }]);
/** Typed or raw contents of any length; a message with both is rejected. */
const inputs = fc.oneof(
  { weight: 3, arbitrary: echoInput },
  {
    weight: 3,
    arbitrary: fc.array(fc.record({ name: names, datatype: fc.constantFrom(...types), shape: shapesOfOne }), {
      maxLength: 3,
    }),
  },
  {
    weight: 2,
    arbitrary: fc.array(fc.record({ name: names, datatype: datatypes, shape: shapes, parameters, contents }), {
      maxLength: 3,
    }),
  },
);
const messages = fc
  .record({
    modelName: rarely("echo", 8, fc.constantFrom("nobody", "")),
    modelVersion: rarely("", 8, fc.constantFrom("1", "2", "x")),
    id: fc.constantFrom("", "request", "\u{1f600}"),
    parameters: rarely({}, 3, parameters),
    inputs,
    outputs: rarely([], 3, fc.array(fc.record({ name: names, parameters }), { maxLength: 2 })),
    other: rarely(null, 3, fc.array(fc.uint8Array({ maxLength: 120 }), { maxLength: 3 })),
  })
  .chain(({ other, ...message }) => {
    const count = message.inputs.filter((input) => !("contents" in input)).length;
    const [first] = message.inputs;
    const bytesOfOne = first?.datatype === "FP32" && first.shape.length === 1 ? Number(first.shape[0]) * 4 : 0;
    const lengths =
      bytesOfOne > 0 && bytesOfOne <= 60 ? { minLength: bytesOfOne, maxLength: bytesOfOne } : { maxLength: 60 };
    const raw = fc.array(fc.uint8Array(lengths), { minLength: count, maxLength: count });
    return raw.map((usual) => ({ ...message, rawInputContents: message.inputs.length > 0 ? usual : (other ?? []) }));
  });

/** Keys, lengths and varints that are hard for protobuf readers. */
const words = [
  Uint8Array.of(0x3a, 0xff, 0xff, 0xff, 0xff, 0x0f),
  Uint8Array.of(0x0a, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01),
  Uint8Array.of(0x0b),
  Uint8Array.of(0x0c),
  Uint8Array.of(0x00),
  Uint8Array.of(0x2a, 0x00),
  Uint8Array.of(0x2a, 0x02, 0x2a, 0x00),
  Uint8Array.of(0x3a, 0x04, 1, 2, 3, 4),
  Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01),
  Uint8Array.of(0x0a, 0x01, 0xff),
  Uint8Array.of(0xfa, 0xff, 0xff, 0xff, 0x0f, 0x00),
];

/** ModelInferRequests as clients write them, most of them changed at a few positions. */
export const inferMessages: fc.Arbitrary<Buffer> = mutated(
  messages.map((init) =>
    toBinary(
      ModelInferRequestSchema,
      create(ModelInferRequestSchema, init as unknown as MessageInitShape<typeof ModelInferRequestSchema>),
    ),
  ),
  words,
);
