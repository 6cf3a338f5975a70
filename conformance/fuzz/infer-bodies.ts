import * as fc from "fast-check";
import { mutated, rarely } from "./mutations.ts";

/** A body for `/v2/models/<m>/infer`; `headerText` is its Inference-Header-Content-Length, null without one. */
export interface InferBody {
  readonly bytes: Buffer;
  readonly headerText: string | null;
}

const names = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom("IN", "INPUT0", "INPUT1", "OUT", "DO", "VALUE", "") },
  { weight: 1, arbitrary: fc.string({ unit: "binary", maxLength: 8 }) },
);
/** Bytes of an element; an element of BYTES has any number. */
export const widths = {
  BOOL: 1,
  UINT8: 1,
  UINT16: 2,
  UINT32: 4,
  UINT64: 8,
  INT8: 1,
  INT16: 2,
  INT32: 4,
  INT64: 8,
  FP16: 2,
  BF16: 2,
  FP32: 4,
  FP64: 8,
  BYTES: 0,
} as const;
type Type = keyof typeof widths;
const types = fc.constantFrom(...(Object.keys(widths) as Type[]));
const shapes = fc.oneof(
  { weight: 6, arbitrary: fc.array(fc.nat(6), { maxLength: 3 }) },
  { weight: 1, arbitrary: fc.array(fc.constantFrom(-1, 0, 2 ** 31, 2 ** 32, 2 ** 53, 1.5, 1e300), { maxLength: 3 }) },
);

const elements: Readonly<Record<"float" | "integer" | "boolean" | "text", fc.Arbitrary<unknown>>> = {
  float: fc.oneof(
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.integer(),
    fc.constantFrom(-0, 5e-324, 1.7e308),
  ),
  integer: fc.oneof(fc.nat(100), fc.integer(), fc.maxSafeInteger()),
  boolean: fc.oneof(fc.boolean(), fc.nat(2)),
  text: fc.string({ unit: "binary", maxLength: 12 }),
};

function elementOf(type: Type): fc.Arbitrary<unknown> {
  if (type === "BYTES") return elements.text;
  if (type === "BOOL") return elements.boolean;
  return type.startsWith("FP") || type === "BF16" ? elements.float : elements.integer;
}

const parameterValues = fc.oneof(
  fc.boolean(),
  fc.integer(),
  fc.double(),
  fc.string({ maxLength: 6 }),
  fc.constant(null),
);
const parameterNames = fc.constantFrom(
  "binary_data",
  "binary_data_output",
  "classification",
  "sequence_id",
  "sequence_start",
  "sequence_end",
  "priority",
  "timeout",
  "shared_memory_region",
  "custom",
);
const parameters = fc.dictionary(parameterNames, parameterValues, { maxKeys: 3, noNullPrototype: true });

/** An input in JSON, or one whose bytes are in the tail. It usually has the number of elements of its shape. */
const inputs = fc.tuple(names, types, shapes, fc.boolean()).chain(([name, datatype, shape, binary]) => {
  const product = shape.reduce((count, dimension) => count * dimension, 1);
  const count = Number.isInteger(product) && product >= 0 && product <= 216 ? product : 3;
  const right = fc.integer({ min: 0, max: 9 }).map((dice) => dice > 0);
  if (binary) {
    const length = datatype === "BYTES" ? fc.nat(40) : fc.constant(count * widths[datatype]);
    return fc.tuple(length, fc.nat(300), right).chain(([usual, other, isRight]) => {
      const byteLength = isRight ? usual : other;
      return fc
        .uint8Array({ minLength: Math.min(byteLength, 300), maxLength: Math.min(byteLength, 300) })
        .map((tail) => ({
          input: { name, datatype, shape, parameters: { binary_data_size: byteLength } } as object,
          tail,
        }));
    });
  }
  return fc.tuple(fc.nat(8), right).chain(([other, isRight]) => {
    const length = Math.min(isRight ? count : other, 40);
    return fc
      .array(elementOf(datatype), { minLength: length, maxLength: length })
      .map((data) => ({ input: { name, datatype, shape, data } as object, tail: new Uint8Array() }));
  });
});

/** An input of the header, and its bytes in the tail. */
interface MadeInput {
  readonly input: object;
  readonly tail: Uint8Array;
}

/** The input of the model 'echo'. */
const echoInput = fc.array(fc.float({ noNaN: true, noDefaultInfinity: true }), { maxLength: 20 }).chain((data) =>
  fc.boolean().map((binary): MadeInput => {
    const input = { name: "IN", datatype: "FP32", shape: [data.length] };
    const tail = new Uint8Array(Float32Array.from(data).buffer);
    return binary
      ? { input: { ...input, parameters: { binary_data_size: tail.length } }, tail }
      : { input: { ...input, data }, tail: new Uint8Array() };
  }),
);

const words = [
  ...Array.from('[]{},:"\\-+.eE0123456789 \n\t\0'),
  "null",
  "true",
  "false",
  "NaN",
  "Infinity",
  "-Infinity",
  "1e999",
  "-0",
  "1e-400",
  "18446744073709551616",
  "9223372036854775807",
  "\\ud800",
  "\\u0000",
  "[[[[[[[[[[[[[[[[",
  '{"a":',
  '"inputs":[]',
  '"data":[1,2]',
  '"shape":[1]',
  '"parameters":{"binary_data_size":4}',
  '"outputs":[{"name":"OUT","parameters":{"classification":2}}]',
  "/*",
  Uint8Array.of(0xff),
  Uint8Array.of(0xc3),
  Uint8Array.of(0xef, 0xbb, 0xbf),
];

const headerTexts = fc.constantFrom("0", "-1", "1", "99999999", "1e3", "", " 7", "0x10", "18446744073709551615");

/** Bodies as clients write them, most of them changed at a few positions. */
export const inferBodies: fc.Arbitrary<InferBody> = fc
  .record({
    id: rarely(undefined, 3, fc.string({ unit: "binary", maxLength: 6 })),
    parameters: rarely(undefined, 3, parameters),
    inputs: fc.oneof(
      echoInput.map((one): MadeInput[] => [one]),
      fc.array(inputs as fc.Arbitrary<MadeInput>, { maxLength: 3 }),
    ),
    outputs: rarely(undefined, 3, fc.array(fc.record({ name: names, parameters }), { maxLength: 2 })),
  })
  .chain(({ inputs: created, ...more }) => {
    const json = Buffer.from(JSON.stringify({ ...more, inputs: created.map(({ input }) => input) }));
    const tail = Buffer.concat(created.map((each) => each.tail));
    return fc.record({
      json: mutated(fc.constant(json), words),
      tail: fc.constant(tail),
      extra: rarely(0, 12, fc.constantFrom(1, -1)),
      other: rarely(null, 12, headerTexts),
    });
  })
  .map(({ json, tail, extra, other }) => {
    const tailBytes = Buffer.concat([tail, Buffer.alloc(Math.max(0, extra))]).subarray(0, tail.length + extra);
    const usual = tail.length === 0 && extra === 0 ? null : String(json.length);
    return { bytes: Buffer.concat([json, tailBytes]), headerText: other === null ? usual : other };
  });
