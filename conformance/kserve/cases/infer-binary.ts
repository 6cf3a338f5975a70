import type { Case } from "../case.ts";
import {
  addSubHeader,
  addSubInputs,
  binary,
  binaryInput,
  floats,
  infer,
  input,
  ints,
  newer,
  strings,
} from "../requests.ts";

const addSubBuffers = [floats(1, 2, 3, 4), floats(0.5, 0.25, 0.1, -1)];
const wantBinary = { parameters: { binary_data_output: true } };
const datatypes: readonly (readonly [string, number])[] = [
  ["BOOL", 1],
  ["UINT8", 1],
  ["UINT16", 2],
  ["UINT32", 4],
  ["UINT64", 8],
  ["INT8", 1],
  ["INT16", 2],
  ["INT32", 4],
  ["INT64", 8],
  ["FP16", 2],
  ["FP32", 4],
  ["FP64", 8],
];

export const inferBinary: readonly Case[] = [
  {
    name: "binary: inputs binary, outputs JSON",
    fixture: "main",
    steps: [binary("add_sub", addSubHeader, addSubBuffers, "json")],
  },
  {
    name: "binary: inputs and outputs binary",
    fixture: "main",
    steps: [binary("add_sub", { ...addSubHeader, ...wantBinary }, addSubBuffers)],
  },
  {
    name: "binary: inputs JSON, outputs binary",
    fixture: "main",
    steps: [infer("add_sub", { inputs: addSubInputs, ...wantBinary }, "binary")],
  },
  {
    name: "binary: one input of each kind",
    fixture: "main",
    steps: [
      binary("add_sub", { inputs: [addSubHeader.inputs[0], addSubInputs[1]], ...wantBinary }, [
        addSubBuffers[0] as Buffer,
      ]),
    ],
  },
  {
    name: "binary: one output of each kind",
    fixture: "main",
    steps: [
      binary(
        "add_sub",
        { ...addSubHeader, outputs: [{ name: "OUTPUT0" }, { name: "OUTPUT1", parameters: { binary_data: true } }] },
        addSubBuffers,
      ),
    ],
  },
  {
    name: "binary: the setting of an output overrides that of the request",
    fixture: "main",
    steps: [
      binary(
        "add_sub",
        {
          ...addSubHeader,
          ...wantBinary,
          outputs: [{ name: "OUTPUT0", parameters: { binary_data: false } }, { name: "OUTPUT1" }],
        },
        addSubBuffers,
      ),
    ],
  },
  {
    name: "binary: the id",
    fixture: "main",
    steps: [binary("add_sub", { id: "b1", ...addSubHeader, ...wantBinary }, addSubBuffers)],
  },
  ...datatypes.map(([datatype, byteSize]): Case => {
    const bytes = Buffer.from(
      Array.from({ length: 2 * byteSize }, (_, i) => (datatype === "BOOL" ? i % 2 : (i * 37 + 1) % 120)),
    );
    const header = { inputs: [binaryInput(`INPUT_${datatype}`, datatype, [2], bytes.length)], ...wantBinary };
    return { name: `binary: ${datatype}`, fixture: "main", steps: [binary("identity_all", header, [bytes])] };
  }),
  {
    name: "binary: BF16",
    fixture: "main",
    steps: [
      binary("identity_bf16", { inputs: [binaryInput("INPUT_BF16", "BF16", [3], 6)], ...wantBinary }, [
        Buffer.from([0x80, 0x3f, 0, 0xc0, 1, 0]),
      ]),
    ],
  },
  {
    name: "binary: BYTES",
    fixture: "main",
    steps: [
      binary(
        "identity_all",
        { inputs: [binaryInput("INPUT_STRING", "BYTES", [3], strings("", "ab", "\u{1F600}").length)], ...wantBinary },
        [strings("", "ab", "\u{1F600}")],
      ),
    ],
  },
  {
    name: "binary: BYTES in, JSON out",
    fixture: "main",
    steps: [
      binary(
        "identity_all",
        { inputs: [binaryInput("INPUT_STRING", "BYTES", [2], strings("a", "b").length)] },
        [strings("a", "b")],
        "json",
      ),
    ],
  },
  {
    name: "binary: no rows",
    fixture: "main",
    steps: [binary("identity_matrix", { inputs: [binaryInput("INPUT0", "FP32", [0, 3], 0)], ...wantBinary }, [])],
  },
  {
    name: "binary: 12 kB are returned unchanged",
    fixture: "main",
    steps: [
      binary("identity_matrix", { inputs: [binaryInput("INPUT0", "FP32", [1000, 3], 12_000)], ...wantBinary }, [
        Buffer.alloc(12_000, "\x11\x22\x33\x3f", "latin1"),
      ]),
    ],
  },
  {
    name: "binary: a batch",
    fixture: "main",
    steps: [
      binary(
        "add_sub_batch",
        {
          inputs: [binaryInput("INPUT0", "INT32", [2, 4], 32), binaryInput("INPUT1", "INT32", [2, 4], 32)],
          ...wantBinary,
        },
        [ints(1, 2, 3, 4, 5, 6, 7, 8), ints(1, 1, 1, 1, 1, 1, 1, 1)],
      ),
    ],
  },
  {
    name: "binary: FP16 outputs cannot be in JSON",
    fixture: "main",
    steps: [
      binary("identity_all", { inputs: [binaryInput("INPUT_FP16", "FP16", [1], 2)] }, [Buffer.from([0, 60])], "error"),
    ],
  },
  {
    name: "binary: BF16 outputs cannot be in JSON",
    fixture: "main",
    steps: [
      binary("identity_bf16", { inputs: [binaryInput("INPUT_BF16", "BF16", [1], 2)] }, [Buffer.from([0, 60])], "error"),
    ],
  },
  {
    name: "raw: the body is the only input",
    fixture: "main",
    steps: [
      infer("identity_batch", floats(1, 2, 3), "binary", { headers: { "inference-header-content-length": "0" } }),
    ],
  },
  {
    name: "raw: a BYTES body without a length",
    fixture: "main",
    steps: [infer("identity_bytes", "some words", "binary", { headers: { "inference-header-content-length": "0" } })],
  },
  {
    name: "raw: a model of two inputs",
    fixture: "main",
    steps: [infer("add_sub", floats(1, 2, 3, 4), "error", { headers: { "inference-header-content-length": "0" } })],
  },
  {
    name: "raw: two variable dimensions or a bad size",
    fixture: "main",
    steps: [
      infer("identity_matrix", floats(1, 2, 3, 4), "error", { headers: { "inference-header-content-length": "0" } }),
    ],
  },
  {
    name: "raw: a fixed shape and a wrong size",
    fixture: "main",
    steps: [infer("scores", floats(1, 2, 3), "error", { headers: { "inference-header-content-length": "0" } })],
  },
  {
    name: "binary: header length missing",
    fixture: "main",
    steps: [infer("add_sub", Buffer.concat([Buffer.from(JSON.stringify(addSubHeader)), ...addSubBuffers]), "error")],
  },
  {
    name: "binary: header length is not a number",
    fixture: "main",
    steps: [
      newer(
        binary("add_sub", addSubHeader, addSubBuffers, "error", { "inference-header-content-length": "abc" }),
        400,
        "Unable to parse Inference-Header-Content-Length, got: abc",
      ),
    ],
  },
  {
    name: "binary: header length is negative",
    fixture: "main",
    steps: [binary("add_sub", addSubHeader, addSubBuffers, "error", { "inference-header-content-length": "-4" })],
  },
  {
    name: "binary: header length beyond the body",
    fixture: "main",
    steps: [binary("add_sub", addSubHeader, addSubBuffers, "error", { "inference-header-content-length": "100000" })],
  },
  {
    name: "binary: body too short",
    fixture: "main",
    steps: [binary("add_sub", addSubHeader, [addSubBuffers[0] as Buffer, floats(1, 2)], "error")],
  },
  { name: "binary: no buffers at all", fixture: "main", steps: [binary("add_sub", addSubHeader, [], "error")] },
  {
    name: "binary: body too long",
    fixture: "main",
    steps: [binary("add_sub", addSubHeader, [...addSubBuffers, floats(9)], "error")],
  },
  {
    name: "binary: size that does not fit the shape",
    fixture: "main",
    steps: [
      binary(
        "add_sub",
        { inputs: [binaryInput("INPUT0", "FP32", [4], 12), binaryInput("INPUT1", "FP32", [4], 16)] },
        [floats(1, 2, 3), floats(1, 2, 3, 4)],
        "error",
      ),
    ],
  },
  {
    name: "binary: binary_data_size is a string",
    fixture: "main",
    steps: [
      binary(
        "add_sub",
        {
          inputs: [
            { name: "INPUT0", datatype: "FP32", shape: [4], parameters: { binary_data_size: "16" } },
            addSubHeader.inputs[1],
          ],
        },
        addSubBuffers,
        "error",
      ),
    ],
  },
  {
    name: "binary: binary_data_size without binary data",
    fixture: "main",
    steps: [infer("add_sub", addSubHeader, "error")],
  },
  {
    name: "binary: too few BYTES elements",
    fixture: "main",
    steps: [
      binary("identity_all", { inputs: [binaryInput("INPUT_STRING", "BYTES", [2], 5)] }, [strings("a")], "error"),
    ],
  },
  {
    name: "binary: too many BYTES elements",
    fixture: "main",
    steps: [
      binary("identity_all", { inputs: [binaryInput("INPUT_STRING", "BYTES", [1], 10)] }, [strings("a", "b")], "error"),
    ],
  },
  {
    name: "binary: a BYTES length that is cut off",
    fixture: "main",
    steps: [
      binary(
        "identity_all",
        { inputs: [binaryInput("INPUT_STRING", "BYTES", [1], 3)] },
        [Buffer.from([1, 0, 0])],
        "error",
      ),
    ],
  },
  {
    name: "binary: a BYTES element that is cut off",
    fixture: "main",
    steps: [
      binary(
        "identity_all",
        { inputs: [binaryInput("INPUT_STRING", "BYTES", [1], 6)] },
        [Buffer.from([9, 0, 0, 0, 65, 66])],
        "error",
      ),
    ],
  },
  {
    name: "binary: FP32 in, wrong datatype for the model",
    fixture: "main",
    steps: [
      binary(
        "add_sub_batch",
        { inputs: [binaryInput("INPUT0", "FP32", [1, 4], 16), binaryInput("INPUT1", "INT32", [1, 4], 16)] },
        [floats(1, 2, 3, 4), ints(1, 2, 3, 4)],
        "error",
      ),
    ],
  },
  {
    name: "binary: data in addition to binary_data_size",
    fixture: "main",
    steps: [
      binary(
        "add_sub",
        { inputs: [{ ...addSubHeader.inputs[0], data: [1, 2, 3, 4] }, addSubHeader.inputs[1]] },
        addSubBuffers,
        "error",
      ),
    ],
  },
  {
    name: "binary: JSON input for FP16",
    fixture: "main",
    steps: [infer("identity_all", { inputs: [input("INPUT_FP16", "FP16", [1], [1])] }, "error")],
  },
  {
    name: "binary: JSON input for BF16",
    fixture: "main",
    steps: [infer("identity_bf16", { inputs: [input("INPUT_BF16", "BF16", [1], [1])] }, "error")],
  },
];
