import type { Case } from "../case.ts";
import { modelInfer, rawInput } from "../grpc-messages.ts";
import { differs, floats, ints, strings, newer } from "../requests.ts";

const main = (name: string, ...steps: Case["steps"]): Case => ({ name: `grpc infer: ${name}`, fixture: "main", steps });

const pairOf = (datatype: string, shape: readonly number[]) => [
  rawInput("INPUT0", datatype, shape),
  rawInput("INPUT1", datatype, shape),
];
const addSub = {
  modelName: "add_sub",
  inputs: pairOf("FP32", [4]),
  rawInputContents: [floats(1, 2, 3, 4), floats(0.5, 0.25, 0.1, -1)],
};
const kind = (modelName: string, value: number, name = "KIND") => ({
  modelName,
  inputs: [rawInput(name, "INT32", [1])],
  rawInputContents: [ints(value)],
});
const report = (more: object) => ({
  modelName: "report",
  inputs: [rawInput("INPUT0", "FP32", [1, 2])],
  rawInputContents: [floats(1, 2)],
  outputs: [{ name: "REPORT" }],
  ...more,
});

const int64 = (value: bigint) => ({ parameterChoice: { case: "int64Param" as const, value } });
const uint64 = (value: bigint) => ({ parameterChoice: { case: "uint64Param" as const, value } });
const string = (value: string) => ({ parameterChoice: { case: "stringParam" as const, value } });
const bool = (value: boolean) => ({ parameterChoice: { case: "boolParam" as const, value } });
const double = (value: number) => ({ parameterChoice: { case: "doubleParam" as const, value } });
const unset = {};

/** A tensor of each datatype with a typed field, with values at the ends of its range. */
const typed: readonly (readonly [datatype: string, contents: object, count: number])[] = [
  ["BOOL", { boolContents: [true, false, true] }, 3],
  ["INT8", { intContents: [-128, 127, 0] }, 3],
  ["INT16", { intContents: [-32768, 32767] }, 2],
  ["INT32", { intContents: [-2147483648, 2147483647, -1] }, 3],
  ["INT64", { int64Contents: [-(2n ** 63n), 2n ** 63n - 1n, -1n] }, 3],
  ["UINT8", { uintContents: [0, 255] }, 2],
  ["UINT16", { uintContents: [0, 65535] }, 2],
  ["UINT32", { uintContents: [0, 4294967295] }, 2],
  ["UINT64", { uint64Contents: [0n, 2n ** 64n - 1n] }, 2],
  ["FP32", { fp32Contents: [1.5, -0, 3.4e38] }, 3],
  ["FP64", { fp64Contents: [1.5, -0, 1.7e308] }, 3],
  ["STRING", { bytesContents: [Buffer.from("one"), Buffer.from(""), Buffer.from([0, 255])] }, 3],
];
const wireName = (datatype: string) => (datatype === "STRING" ? "BYTES" : datatype);

const parameterCases: readonly (readonly [name: string, parameters: object])[] = [
  ["strings, numbers and truths", { a: string("text"), b: int64(-5n), c: bool(true), d: string("") }],
  ["a number as the sequence", { sequence_id: int64(5n), sequence_start: bool(true), sequence_end: bool(false) }],
  ["a text as the sequence", { sequence_id: string("s-1"), sequence_end: bool(true) }],
  ["a timeout", { timeout: int64(5_000_000n) }],
  ["a negative timeout", { timeout: int64(-1n) }],
  ["a priority", { priority: uint64(2n) }],
  ["a signed priority", { priority: int64(1n) }],
  ["an empty final response", { triton_enable_empty_final_response: bool(true) }],
];
const wrongParameters: readonly (readonly [name: string, parameters: object])[] = [
  ["a boolean as the sequence", { sequence_id: bool(true) }],
  ["a start that is not a boolean", { sequence_start: int64(1n) }],
  ["an end that is not a boolean", { sequence_end: string("true") }],
  ["a priority that is a text", { priority: string("1") }],
  ["an unsigned timeout", { timeout: uint64(1n) }],
  ["a timeout that is a text", { timeout: string("1") }],
  ["an unsigned number", { a: uint64(7n) }],
  ["a negative priority", { priority: int64(-1n) }],
  ["an unsigned sequence", { sequence_id: uint64(1n) }],
  ["a reserved name", { triton_anything: int64(1n) }],
  ["a parameter without a value", { a: unset }],
  ["an empty final response that is not a boolean", { triton_enable_empty_final_response: int64(1n) }],
];

export const grpcInfer: readonly Case[] = [
  main("raw tensors", modelInfer({ ...addSub, id: "a-1" })),
  main("a version", modelInfer({ ...addSub, modelVersion: "1" })),
  main("one output", modelInfer({ ...addSub, outputs: [{ name: "OUTPUT1" }] })),
  main(
    "an output that is requested twice",
    modelInfer({ ...addSub, outputs: [{ name: "OUTPUT1" }, { name: "OUTPUT1" }] }),
  ),
  main(
    "a batch",
    modelInfer({
      modelName: "add_sub_batch",
      inputs: pairOf("INT32", [2, 4]),
      rawInputContents: [ints(1, 2, 3, 4, 5, 6, 7, 8), ints(1, 1, 1, 1, 2, 2, 2, 2)],
    }),
  ),
  ...typed.map(([datatype, contents, count]) =>
    main(
      `typed ${datatype}`,
      modelInfer({
        modelName: "identity_all",
        inputs: [{ ...rawInput(`INPUT_${datatype}`, wireName(datatype), [count]), contents }],
      }),
    ),
  ),
  main(
    "raw BYTES",
    modelInfer({
      modelName: "identity_bytes",
      inputs: [rawInput("INPUT0", "BYTES", [2, 1])],
      rawInputContents: [strings("one", "")],
    }),
  ),
  main(
    "raw FP16",
    modelInfer({
      modelName: "identity_all",
      inputs: [rawInput("INPUT_FP16", "FP16", [2])],
      rawInputContents: [Buffer.from([0, 60, 0, 64])],
    }),
  ),
  main(
    "raw BF16",
    modelInfer({
      modelName: "identity_bf16",
      inputs: [rawInput("INPUT_BF16", "BF16", [2])],
      rawInputContents: [Buffer.from([128, 63, 0, 64])],
    }),
  ),
  main(
    "no elements",
    modelInfer({
      modelName: "identity_all",
      inputs: [rawInput("INPUT_FP32", "FP32", [0])],
      rawInputContents: [new Uint8Array(0)],
    }),
  ),
  main(
    "an ensemble",
    modelInfer(
      {
        ...addSub,
        modelName: "fan",
        inputs: [rawInput("A", "FP32", [4])],
        rawInputContents: [floats(1, 2, 3, 4)],
      },
      "map",
    ),
  ),
  ...[1, 3, 4, 5].map((count) =>
    main(
      `the ${count} largest as classes`,
      modelInfer({
        modelName: "scores",
        inputs: [rawInput("INPUT0", "FP32", [4])],
        rawInputContents: [floats(0.25, 4, -1, 4)],
        outputs: [{ name: "SCORES", parameters: { classification: int64(BigInt(count)) } }],
      }),
    ),
  ),
  main(
    "classes of a batch",
    modelInfer({
      modelName: "scores_batch",
      inputs: [rawInput("INPUT0", "INT32", [2, 3])],
      rawInputContents: [ints(1, 3, 2, 9, 8, 7)],
      outputs: [{ name: "SCORES", parameters: { classification: int64(2n) } }],
    }),
  ),
  ...([0n, -1n] as const).map((count) =>
    main(
      `${count} classes`,
      modelInfer({ ...addSub, outputs: [{ name: "OUTPUT0", parameters: { classification: int64(count) } }] }, "error"),
    ),
  ),
  main(
    "classes counted by a text",
    modelInfer({ ...addSub, outputs: [{ name: "OUTPUT0", parameters: { classification: string("1") } }] }, "error"),
  ),
  ...parameterCases.map(([name, parameters]) => main(`parameters: ${name}`, modelInfer(report({ parameters })))),
  ...wrongParameters.map(([name, parameters]) =>
    main(`wrong parameters: ${name}`, modelInfer({ ...addSub, parameters: parameters as never }, "error")),
  ),
  main("parameters: a fraction", modelInfer(report({ parameters: { a: double(0.5) } }))),
  main("an id in the error", modelInfer(report({ id: "the id" }))),
  ...[0, 1, 2, 3, 4, 5, 6, 7, 10].map((code) =>
    main(`a model's error ${code}`, modelInfer(kind("errors", code), "error")),
  ),
  ...[11, 12, 13, 14, 15].map((code) => main(`a model's failure ${code}`, modelInfer(kind("errors", code), "error"))),
  main("an error in a step", modelInfer(kind("failing_step", 3, "K"), "error")),
];

const onlySecond = (datatype: string, shape: readonly number[]) => [
  rawInput("INPUT0", "FP32", [4]),
  rawInput("INPUT1", datatype, shape),
];
const wrong = (name: string, init: object, more: Partial<Case> = {}): Case => ({
  ...main(`wrong: ${name}`, modelInfer(init, "error")),
  ...more,
});

/** Requests that are rejected. */
export const grpcRequestErrors: readonly Case[] = [
  wrong("unknown model", { ...addSub, modelName: "nobody" }),
  wrong("no model", { ...addSub, modelName: "" }),
  wrong("unknown version", { ...addSub, modelVersion: "9" }),
  wrong("a version that is not a number", { ...addSub, modelVersion: "x" }),
  wrong("a negative version", { ...addSub, modelVersion: "-1" }),
  wrong("no inputs", { modelName: "add_sub" }),
  wrong("one input of two", { ...addSub, inputs: addSub.inputs.slice(1), rawInputContents: [floats(1, 2, 3, 4)] }),
  wrong("an input twice", { ...addSub, inputs: [addSub.inputs[0], addSub.inputs[0]], id: "twice" }),
  wrong("an unknown input", {
    ...addSub,
    inputs: [rawInput("INPUT0", "FP32", [4]), rawInput("INPUT7", "FP32", [4])],
  }),
  wrong("an unknown output", { ...addSub, outputs: [{ name: "OUTPUT7" }] }),
  wrong("another datatype", { ...addSub, inputs: onlySecond("INT32", [4]) }),
  wrong("another shape", { ...addSub, inputs: onlySecond("FP32", [2, 2]), id: "shape" }),
  ...[2n ** 53n + 1n, 2n ** 63n - 1n].map((dimension) =>
    main(
      `wrong: a dimension of ${dimension}`,
      newer(
        modelInfer(
          {
            ...addSub,
            inputs: [rawInput("INPUT0", "FP32", [4]), { ...rawInput("INPUT1", "FP32", []), shape: [dimension] }],
          },
          "error",
        ),
        603,
        `invalid shape for input 'INPUT1': shape [${dimension}] causes total element count`,
      ),
    ),
  ),
  wrong("too few bytes", { ...addSub, rawInputContents: [floats(1, 2, 3), floats(1, 2, 3, 4)] }),
  wrong("too many bytes", { ...addSub, rawInputContents: [floats(1, 2, 3, 4, 5), floats(1, 2, 3, 4)] }),
  wrong("fewer raw tensors than inputs", { ...addSub, rawInputContents: [floats(1, 2, 3, 4)] }),
  wrong("no raw tensor", { ...addSub, rawInputContents: [] }),
  wrong("typed and raw tensors", {
    ...addSub,
    inputs: [{ ...rawInput("INPUT0", "FP32", [4]), contents: { fp32Contents: [1, 2, 3, 4] } }, addSub.inputs[1]],
    rawInputContents: [floats(1, 2, 3, 4)],
  }),
  wrong("typed elements of another datatype", {
    ...addSub,
    inputs: [
      { ...rawInput("INPUT0", "FP32", [4]), contents: { intContents: [1, 2, 3, 4] } },
      { ...rawInput("INPUT1", "FP32", [4]), contents: { fp32Contents: [1, 2, 3, 4] } },
    ],
    rawInputContents: [],
  }),
  wrong("narrow elements in a wide field", {
    ...addSub,
    inputs: [
      { ...rawInput("INPUT0", "FP32", [4]), contents: { int64Contents: [1n, 2n, 3n, 4n] } },
      { ...rawInput("INPUT1", "FP32", [4]), contents: { fp32Contents: [1, 2, 3, 4] } },
    ],
    rawInputContents: [],
  }),
  wrong("typed elements of two datatypes", {
    ...addSub,
    inputs: [
      { ...rawInput("INPUT0", "FP32", [4]), contents: { fp32Contents: [1, 2, 3, 4], fp64Contents: [1, 2, 3, 4] } },
      { ...rawInput("INPUT1", "FP32", [4]), contents: { fp32Contents: [1, 2, 3, 4] } },
    ],
    rawInputContents: [],
  }),
  wrong("too few typed elements", {
    ...addSub,
    inputs: [
      { ...rawInput("INPUT0", "FP32", [4]), contents: { fp32Contents: [1, 2, 3] } },
      { ...rawInput("INPUT1", "FP32", [4]), contents: { fp32Contents: [1, 2, 3, 4] } },
    ],
    rawInputContents: [],
  }),
  wrong("empty typed contents", {
    ...addSub,
    inputs: [
      { ...rawInput("INPUT0", "FP32", [4]), contents: { fp32Contents: [1, 2, 3, 4] } },
      { ...rawInput("INPUT1", "FP32", [4]), contents: {} },
    ],
    rawInputContents: [],
  }),
  wrong("FP16 as typed elements", {
    modelName: "identity_all",
    inputs: [{ ...rawInput("INPUT_FP16", "FP16", [1]), contents: { fp32Contents: [1] } }],
  }),
  wrong("an unknown datatype", { ...addSub, inputs: onlySecond("FP8", [4]) }),
  wrong("no datatype", { ...addSub, inputs: onlySecond("", [4]) }),
  wrong("a negative dimension", { ...addSub, inputs: onlySecond("FP32", [-4]) }),
  wrong("a batch that is too large", {
    modelName: "add_sub_batch",
    inputs: pairOf("INT32", [5, 4]),
    rawInputContents: [ints(...Array.from({ length: 20 }, () => 1)), ints(...Array.from({ length: 20 }, () => 1))],
  }),
  main(
    "wrong: batches of different sizes",
    differs(
      modelInfer(
        {
          modelName: "add_sub_batch",
          inputs: [rawInput("INPUT0", "INT32", [1, 4]), rawInput("INPUT1", "INT32", [2, 4])],
          rawInputContents: [ints(1, 2, 3, 4), ints(1, 2, 3, 4, 5, 6, 7, 8)],
        },
        "error",
      ),
      {
        row: "input-order",
        status: 603,
        includes: ["batch size does not match other inputs for 'add_sub_batch'"],
      },
    ),
  ),
  wrong("a string that is cut off", {
    modelName: "identity_bytes",
    inputs: [rawInput("INPUT0", "BYTES", [1, 1])],
    rawInputContents: [Buffer.from([9, 0, 0, 0, 65])],
  }),
  wrong("strings beyond the shape", {
    modelName: "identity_bytes",
    inputs: [rawInput("INPUT0", "BYTES", [1, 1])],
    rawInputContents: [strings("a", "b")],
  }),
  wrong("an input in an unknown shared memory region", {
    ...addSub,
    inputs: [
      {
        ...rawInput("INPUT0", "FP32", [4]),
        parameters: { shared_memory_region: string("r"), shared_memory_byte_size: int64(16n) },
      },
      addSub.inputs[1],
    ],
  }),
  wrong("an input in shared memory without a size", {
    ...addSub,
    inputs: [
      { ...rawInput("INPUT0", "FP32", [4]), parameters: { shared_memory_region: string("r") } },
      addSub.inputs[1],
    ],
  }),
  ...(
    [
      ["a shared memory size without a region", { shared_memory_byte_size: int64(16n) }],
      ["a shared memory offset without a region", { shared_memory_offset: int64(16n) }],
      ["a shared memory region that is not a string", { shared_memory_region: int64(1n) }],
      ["an unsigned shared memory size", { shared_memory_region: string("r"), shared_memory_byte_size: uint64(16n) }],
      [
        "a shared memory offset that is a text",
        {
          shared_memory_region: string("r"),
          shared_memory_byte_size: int64(16n),
          shared_memory_offset: string("0"),
        },
      ],
    ] as const
  ).flatMap(([name, parameters]) => [
    wrong(`an input of ${name}`, {
      ...addSub,
      inputs: [{ ...rawInput("INPUT0", "FP32", [4]), parameters }, addSub.inputs[1]],
    }),
    wrong(`an output of ${name}`, { ...addSub, outputs: [{ name: "OUTPUT0", parameters }] }),
  ]),
  wrong("an output in an unknown shared memory region", {
    ...addSub,
    outputs: [
      {
        name: "OUTPUT0",
        parameters: { shared_memory_region: string("r"), shared_memory_byte_size: int64(16n) },
      },
    ],
  }),
  main("wrong: bytes that are not protobuf", {
    ...modelInfer({}, "status"),
    request: { ...modelInfer({}).request, body: Buffer.from([0, 0, 0, 0, 2, 0x0a, 0xff]) },
  }),
  main("wrong: no message", { ...modelInfer({}, "status"), request: { ...modelInfer({}).request, body: "" } }),
  main("wrong: a message that is cut off", {
    ...modelInfer({}, "status"),
    request: { ...modelInfer({}).request, body: Buffer.from([0, 0, 0, 0, 9, 0x0a]) },
  }),
  main(
    "wrong: an unknown compression",
    differs(modelInfer(addSub, "status", { headers: { "grpc-encoding": "zstd" } }), {
      row: "grpc-unknown-compression",
      status: 612,
      includes: ["Compression algorithm 'zstd' is not known."],
      notAsked: true,
    }),
  ),
];
