import type { Case } from "../case.ts";
import { differs, infer, input } from "../requests.ts";

const kind = (value: number) => ({ inputs: [input("KIND", "INT32", [1], [value])] });
const codes = [
  "UNKNOWN",
  "INTERNAL",
  "NOT_FOUND",
  "INVALID_ARG",
  "UNAVAILABLE",
  "UNSUPPORTED",
  "ALREADY_EXISTS",
  "CANCELLED",
];
const odd = (name: string, value: number): Case => ({
  name: `model: ${name}`,
  fixture: "main",
  steps: [infer("odd_outputs", kind(value))],
});
const failing = (name: string, value: number): Case => ({
  name: `model: ${name}`,
  fixture: "main",
  steps: [infer("errors", kind(value), "error")],
});
const report = (name: string, more: object): Case => ({
  name: `model sees: ${name}`,
  fixture: "main",
  steps: [
    infer("report", { inputs: [input("INPUT0", "FP32", [1, 2], [1, 2])], outputs: [{ name: "REPORT" }], ...more }),
  ],
});

/** Responses and errors of models. */
export const modelResponses: readonly Case[] = [
  ...codes.map((code, value) => failing(`TritonError of code ${code}`, value)),
  failing("TritonError without a code", 10),
  failing("an exception in execute", 11),
  failing("a TritonModelException", 12),
  failing("too few responses", 13),
  failing("execute returns a string", 14),
  failing("execute returns a list of strings", 15),
  failing("an error in addition to outputs", 16),
  failing("an exception with Cyrillic text", 17),
  { name: "model: the model responds after all errors", fixture: "main", steps: [infer("errors", kind(99))] },
  odd("two outputs", 0),
  odd("an output of another datatype", 1),
  odd("an output that is not configured is dropped", 2),
  odd("no outputs at all", 3),
  odd("outputs in the order of the model", 4),
  odd("an output of another shape", 5),
  odd("an output that is not contiguous", 6),
  odd("an output without elements", 7),
  odd("strings for an output of numbers", 8),
  report("no parameters", {}),
  report("an id", { id: "abc" }),
  report("custom parameters of every type", { parameters: { s: "x", i: 7, b: true, d: 1.5, neg: -3, empty: "" } }),
  report("a sequence", { parameters: { sequence_id: 42, sequence_start: true, sequence_end: true } }),
  report("a sequence with a text as its id", { parameters: { sequence_id: "seq", sequence_start: true } }),
  report("a timeout and a priority", { parameters: { timeout: 5_000_000, priority: 1 } }),
  report("no requested outputs: all", { outputs: undefined }),
  report("a big parameter", { parameters: { big: 9_007_199_254_740_991 } }),
];

const scores = { inputs: [input("INPUT0", "FP32", [4], [0.1, 0.7, 0.15, 0.05])] };
const batchScores = { inputs: [input("INPUT0", "INT32", [2, 3], [1, 3, 2, 9, 8, 7])] };
const classify = (count: number, binaryData?: boolean) => ({
  outputs: [
    {
      name: "SCORES",
      parameters: { classification: count, ...(binaryData === undefined ? {} : { binary_data: binaryData }) },
    },
  ],
});
const addSub = { inputs: [input("INPUT0", "FP32", [4], [1, 2, 3, 4]), input("INPUT1", "FP32", [4], [1, 1, 1, 1])] };

/** Returns a case with all classes of an output that equals the input. */
const classified = (name: string, datatype: string, data: string): Case => ({
  name: `classification: ${name}`,
  fixture: "main",
  steps: [
    infer(
      "identity_all",
      `{"inputs":[{"name":"INPUT_${datatype}","datatype":"${datatype}","shape":[${data.split(",").length}],"data":${data}}],"outputs":[{"name":"OUTPUT_${datatype}","parameters":{"classification":1000}}]}`,
    ),
  ],
});

/**
 * Returns a case like `classified`. Our server keeps the order of equal scores and puts NaN last; Triton's `std::sort`
 * puts both anywhere.
 */
const classifiedInOrder = (name: string, datatype: "FP32" | "INT32", values: readonly number[]): Case => {
  const { steps, ...rest } = classified(name, datatype, `[${values.join(",")}]`);
  const last = (value: number) => Number(Number.isNaN(value));
  const classes = values
    .map((value, index) => ({ value, index }))
    .toSorted((a, b) => last(a.value) - last(b.value) || b.value - a.value)
    .map(
      ({ value, index }) =>
        `${datatype === "INT32" ? value : value.toFixed(6).toLowerCase().replace("infinity", "inf")}:${index}`,
    );
  const data = `"data":${JSON.stringify(classes)}`;
  return {
    ...rest,
    steps: steps.map((step) => differs(step, { row: "classification-order", status: 200, includes: [data] })),
  };
};

/** The selection and the form of outputs. */
export const outputs: readonly Case[] = [
  {
    name: "outputs: one of two",
    fixture: "main",
    steps: [infer("add_sub", { ...addSub, outputs: [{ name: "OUTPUT1" }] })],
  },
  {
    name: "outputs: both, requested in the opposite order",
    fixture: "main",
    steps: [infer("add_sub", { ...addSub, outputs: [{ name: "OUTPUT1" }, { name: "OUTPUT0" }] })],
  },
  {
    name: "outputs: the same twice",
    fixture: "main",
    steps: [infer("add_sub", { ...addSub, outputs: [{ name: "OUTPUT1" }, { name: "OUTPUT1" }] }, "status")],
  },
  {
    name: "outputs: all, if the request names none",
    fixture: "main",
    steps: [infer("add_sub", { ...addSub, outputs: [] })],
  },
  {
    name: "outputs: unknown parameters are ignored",
    fixture: "main",
    steps: [infer("add_sub", { ...addSub, outputs: [{ name: "OUTPUT0", parameters: { colour: "red" } }] })],
  },
  {
    name: "classification: the best two with labels",
    fixture: "main",
    steps: [infer("scores", { ...scores, ...classify(2) })],
  },
  {
    name: "classification: more than there are elements",
    fixture: "main",
    steps: [infer("scores", { ...scores, ...classify(10) })],
  },
  { name: "classification: one", fixture: "main", steps: [infer("scores", { ...scores, ...classify(1) })] },
  {
    name: "classification: of a batch of integers without labels",
    fixture: "main",
    steps: [infer("scores_batch", { ...batchScores, ...classify(2) })],
  },
  {
    name: "classification: binary",
    fixture: "main",
    steps: [infer("scores", { ...scores, ...classify(2, true) }, "binary")],
  },
  {
    name: "classification: of zero classes",
    fixture: "main",
    steps: [infer("scores", { ...scores, ...classify(0) }, "status")],
  },
  {
    name: "classification: ties keep the order of the original",
    fixture: "main",
    steps: [infer("scores", { inputs: [input("INPUT0", "FP32", [4], [1, 2, 2, 1])], ...classify(1) }, "status")],
  },
  classified("halves are rounded as in C", "FP32", "[0.5,0.0078125,0.0234375,-0.0078125,2.5e-7,1e22,-0.0]"),
  classified("doubles", "FP64", "[0.1,1e300,123456.7890625,4.9999995,0.0000005,-1e-9]"),
  classifiedInOrder("NaN among few", "FP32", [1, NaN, 3, 2, NaN, -1, Infinity, -Infinity, 0]),
  classifiedInOrder("NaN first", "FP32", [NaN, 1, 3, 2]),
  classified("ties among few", "INT32", "[1,2,2,1,2,1,0]"),
  ...[17, 40, 100, 300].map((count) =>
    classifiedInOrder(
      `ties among ${count}`,
      "INT32",
      Array.from({ length: count }, (_, i) => (i * 7) % 5),
    ),
  ),
  ...[17, 40, 100].map((count) =>
    classifiedInOrder(
      `NaN among ${count}`,
      "FP32",
      Array.from({ length: count }, (_, i) => (i % 4 === 1 ? NaN : (i * 7) % 11)),
    ),
  ),
  {
    name: "classification: BYTES are rejected",
    fixture: "main",
    steps: [
      differs(
        infer(
          "upper",
          {
            inputs: [input("TEXT", "BYTES", [1], ["a"])],
            outputs: [{ name: "UPPER", parameters: { classification: 1 } }],
          },
          "error",
        ),
        {
          row: "classification-of-bytes",
          status: 400,
          includes: ["class result not available for output due to unsupported type"],
          notAsked: true,
        },
      ),
    ],
  },
];
