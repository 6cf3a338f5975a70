import type { Case, Difference, Request } from "../case.ts";
import { addSubInputs, differs, infer, input, newer } from "../requests.ts";

const [first, second] = addSubInputs;
const addSub = (name: string, body: unknown, more: Partial<Request> = {}): Case => ({
  name: `refused: ${name}`,
  fixture: "main",
  steps: [infer("add_sub", body, "error", more)],
});
const typed = (datatype: string, data: string): Case => ({
  name: `refused: ${data} as ${datatype}`,
  fixture: "main",
  steps: [
    infer(
      "identity_all",
      `{"inputs":[{"name":"INPUT_${datatype === "BYTES" ? "STRING" : datatype}","datatype":"${datatype}","shape":[1],"data":[${data}]}]}`,
      "error",
    ),
  ],
});
const withFirst = (change: object) => ({ inputs: [{ ...first, ...change }, second] });

/** A difference: Triton checks the inputs in hash order, and we in the order of the configuration. */
const inputOrder = (text: string): Difference => ({ row: "input-order", status: 400, includes: [text] });

export const requestErrors: readonly Case[] = [
  { name: "refused: unknown model", fixture: "main", steps: [infer("nobody", { inputs: [] }, "error")] },
  { name: "refused: unknown version", fixture: "main", steps: [infer("add_sub/versions/4", { inputs: [] }, "error")] },
  addSub("an empty body", ""),
  addSub("no JSON", "hello"),
  addSub("JSON that ends early", '{"inputs":[{"name":"INPUT0"'),
  addSub("a trailing comma", '{"inputs":[],}'),
  addSub("text after the JSON", '{"inputs":[]} x'),
  addSub("an array", "[]"),
  addSub("a number", "17"),
  addSub("a comment", '{/* */"inputs":[]}'),
  addSub("no inputs", "{}"),
  addSub("inputs that are not an array", '{"inputs":{}}'),
  addSub("an empty list of inputs", '{"inputs":[]}'),
  addSub("an input that is not an object", '{"inputs":[1]}'),
  addSub("one input of two", { inputs: [first] }),
  {
    name: "refused: three inputs of two",
    fixture: "main",
    steps: [
      differs(
        infer("add_sub", { inputs: [first, second, input("INPUT2", "FP32", [4], [1, 2, 3, 4])] }, "error"),
        inputOrder("expected 2 inputs but got 3 inputs for model 'add_sub'. Got input(s) ["),
      ),
    ],
  },
  addSub("an input of another name", { inputs: [first, input("INPUT7", "FP32", [4], [1, 2, 3, 4])] }),
  addSub("the same input twice", { inputs: [first, first] }),
  addSub("with an id in the message", { id: "my-id", inputs: [first] }),
  addSub("an id that is a number", { id: 7, inputs: addSubInputs }),
  addSub("an input without a name", withFirst({ name: undefined })),
  addSub("an input without a shape", withFirst({ shape: undefined })),
  addSub("an input without a datatype", withFirst({ datatype: undefined })),
  addSub("an input without data", withFirst({ data: undefined })),
  addSub("a name that is a number", withFirst({ name: 1 })),
  addSub("a shape that is a number", withFirst({ shape: 4 })),
  addSub("a shape of strings", withFirst({ shape: ["4"] })),
  addSub("a shape with a fraction", '{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[4.0],"data":[1,2,3,4]}]}'),
  addSub("a datatype that is a number", withFirst({ datatype: 3 })),
  addSub("an unknown datatype", withFirst({ datatype: "FLOAT" })),
  addSub("a config datatype", withFirst({ datatype: "TYPE_FP32" })),
  addSub("a datatype in lower case", withFirst({ datatype: "fp32" })),
  addSub("a wrong datatype", withFirst({ datatype: "INT32" })),
  addSub("data that is an object", withFirst({ data: { a: 1 } })),
  addSub("data that is a number", withFirst({ data: 5 })),
  addSub("data that is null", withFirst({ data: null })),
  addSub("too few elements", withFirst({ data: [1, 2, 3] })),
  addSub("too many elements", withFirst({ data: [1, 2, 3, 4, 5] })),
  addSub("a wrong shape", { inputs: [input("INPUT0", "FP32", [3], [1, 2, 3]), second] }),
  addSub("too many dimensions", { inputs: [input("INPUT0", "FP32", [1, 4], [1, 2, 3, 4]), second] }),
  addSub("no dimensions", { inputs: [input("INPUT0", "FP32", [], [1]), second] }),
  addSub("a negative dimension", withFirst({ shape: [-4] })),
  addSub("a variable dimension in a request", withFirst({ shape: [-1] })),
  {
    name: "refused: a dimension beyond 2^53",
    fixture: "main",
    steps: [
      differs(
        infer(
          "add_sub",
          '{"inputs":[{"name":"INPUT0","datatype":"FP32","shape":[2, 9007199254740993],"data":[1]}]}',
          "error",
        ),
        {
          row: "newer-release",
          status: 400,
          includes: ["shape [2,9007199254740993] causes total element count"],
          notAsked: true,
        },
      ),
    ],
  },
  {
    name: "refused: a shape whose product overflows",
    fixture: "main",
    steps: [
      newer(
        infer("add_sub", { inputs: [input("INPUT0", "FP32", [4294967296, 4294967296], [1]), second] }, "error"),
        400,
        "invalid shape for input 'INPUT0': shape [4294967296,4294967296] causes total element count to exceed",
      ),
    ],
  },
  addSub("parameters that are an array", { parameters: [], inputs: addSubInputs }),
  addSub("a parameter that is an object", { parameters: { a: {} }, inputs: addSubInputs }),
  addSub("a parameter that is an array", { parameters: { a: [1] }, inputs: addSubInputs }),
  addSub("a parameter that is null", { parameters: { a: null }, inputs: addSubInputs }),
  addSub("a reserved parameter", { parameters: { triton_x: 1 }, inputs: addSubInputs }),
  addSub("a priority that is a string", { parameters: { priority: "1" }, inputs: addSubInputs }),
  addSub("a timeout that is negative", { parameters: { timeout: -1 }, inputs: addSubInputs }),
  addSub("a sequence_start that is a number", {
    parameters: { sequence_id: 1, sequence_start: 1 },
    inputs: addSubInputs,
  }),
  addSub("a sequence_id that is a bool", { parameters: { sequence_id: true }, inputs: addSubInputs }),
  addSub("binary_data_output that is a number", { parameters: { binary_data_output: 1 }, inputs: addSubInputs }),
  addSub("outputs that are an object", { inputs: addSubInputs, outputs: {} }),
  addSub("an output without a name", { inputs: addSubInputs, outputs: [{}] }),
  addSub("an unknown output", { inputs: addSubInputs, outputs: [{ name: "OUTPUT9" }] }),
  addSub("a binary_data that is a number", {
    inputs: addSubInputs,
    outputs: [{ name: "OUTPUT0", parameters: { binary_data: 1 } }],
  }),
  addSub("an unknown shared memory region", {
    inputs: [
      { ...first, data: undefined, parameters: { shared_memory_region: "r", shared_memory_byte_size: 16 } },
      second,
    ],
  }),
  addSub("a duplicate key: the first wins", '{"inputs":[],"inputs":[{"name":"INPUT0"}]}'),
  typed("FP32", '"1"'),
  typed("FP32", "true"),
  typed("FP32", "null"),
  typed("FP64", '"x"'),
  typed("INT32", "1.0"),
  typed("INT32", "1.5"),
  typed("INT32", '"1"'),
  typed("INT64", "9223372036854775808"),
  typed("UINT64", "-1"),
  typed("UINT8", "-1"),
  typed("BOOL", "1"),
  typed("BOOL", '"true"'),
  typed("BYTES", "1"),
  typed("BYTES", "null"),
  {
    name: "refused: a batch above the limit",
    fixture: "main",
    steps: [
      infer(
        "add_sub_batch",
        {
          inputs: [
            input("INPUT0", "INT32", [5, 4], Array(20).fill(1)),
            input("INPUT1", "INT32", [5, 4], Array(20).fill(1)),
          ],
        },
        "error",
      ),
    ],
  },
  {
    name: "refused: batches that differ",
    fixture: "main",
    steps: [
      differs(
        infer(
          "add_sub_batch",
          {
            inputs: [
              input("INPUT0", "INT32", [2, 4], Array(8).fill(1)),
              input("INPUT1", "INT32", [1, 4], Array(4).fill(1)),
            ],
          },
          "error",
        ),
        inputOrder("batch size does not match other inputs for 'add_sub_batch'"),
      ),
    ],
  },
  {
    name: "refused: no batch dimension",
    fixture: "main",
    steps: [infer("scores_batch", { inputs: [input("INPUT0", "INT32", [3], [1, 2, 3])] }, "error")],
  },
  {
    name: "refused: an empty shape for a batching model",
    fixture: "main",
    steps: [infer("scores_batch", { inputs: [input("INPUT0", "INT32", [], [1])] }, "error")],
  },
  {
    name: "refused: the optional input instead of the required one",
    fixture: "main",
    steps: [
      differs(infer("optional", { inputs: [input("B", "INT32", [2], [1, 2])] }, "status"), {
        row: "required-inputs",
        status: 400,
        includes: ["but missing required input(s) ['A']"],
      }),
    ],
  },
  {
    name: "refused: without the required inputs",
    fixture: "main",
    steps: [infer("optional", { inputs: [] }, "error")],
  },
  {
    name: "refused: a wrong second dimension",
    fixture: "main",
    steps: [infer("identity_matrix", { inputs: [input("INPUT0", "FP32", [2, 2], [1, 2, 3, 4])] }, "error")],
  },
  {
    name: "refused: a batch of no rows",
    fixture: "main",
    steps: [infer("identity_batch", { inputs: [input("INPUT0", "FP32", [0, 4], [])] }, "error")],
  },
];
