import type { Case } from "../case.ts";
import { binary, binaryInput, floats, get, infer, input } from "../requests.ts";

const x = (name: string) => input(name, "FP32", [4], [1, 2, 3, 4]);

export const ensembles: readonly Case[] = [
  {
    name: "ensemble: two steps",
    fixture: "main",
    steps: [infer("chain", { inputs: [x("A"), input("B", "FP32", [4], [1, 1, 1, 1])] })],
  },
  {
    name: "ensemble: the id comes back",
    fixture: "main",
    steps: [infer("chain", { id: "e-1", inputs: [x("A"), x("B")] })],
  },
  {
    name: "ensemble: one of two outputs",
    fixture: "main",
    steps: [infer("chain", { inputs: [x("A"), x("B")], outputs: [{ name: "LAST" }] })],
  },
  {
    name: "ensemble: fan-out and fan-in",
    fixture: "main",
    steps: [infer("fan", { inputs: [x("A")], outputs: [{ name: "BOTH" }] })],
  },
  {
    name: "ensemble: an output of the first step alone",
    fixture: "main",
    steps: [infer("fan", { inputs: [x("A")], outputs: [{ name: "LEFT" }] })],
  },
  { name: "ensemble: an ensemble inside an ensemble", fixture: "main", steps: [infer("nested", { inputs: [x("X")] })] },
  {
    name: "ensemble: a batching ensemble over a step that does not batch",
    fixture: "main",
    steps: [infer("batched_over_plain", { inputs: [input("A", "FP32", [2, 3], [1, 2, 3, 4, 5, 6])] })],
  },
  {
    name: "ensemble: binary",
    fixture: "main",
    steps: [
      binary("nested", { inputs: [binaryInput("X", "FP32", [4], 16)], parameters: { binary_data_output: true } }, [
        floats(1, 2, 3, 4),
      ]),
    ],
  },
  {
    name: "ensemble: a step's error",
    fixture: "main",
    steps: [infer("failing_step", { inputs: [input("K", "INT32", [1], [3])] }, "error")],
  },
  {
    name: "ensemble: a step's exception",
    fixture: "main",
    steps: [infer("failing_step", { inputs: [input("K", "INT32", [1], [11])] }, "error")],
  },
  {
    name: "ensemble: a step's UNAVAILABLE",
    fixture: "main",
    steps: [infer("failing_step", { inputs: [input("K", "INT32", [1], [4])] }, "error")],
  },
  {
    name: "ensemble: a step that leaves out an output",
    fixture: "main",
    steps: [infer("missing_output", { inputs: [input("K", "INT32", [1], [3])] }, "error")],
  },
  {
    name: "ensemble: a step that answers in another shape",
    fixture: "main",
    steps: [infer("missing_output", { inputs: [input("K", "INT32", [1], [5])] }, "status")],
  },
  {
    name: "ensemble: a wrong shape",
    fixture: "main",
    steps: [infer("nested", { inputs: [input("X", "FP32", [3], [1, 2, 3])] }, "error")],
  },
  { name: "ensemble: a missing input", fixture: "main", steps: [infer("chain", { inputs: [x("A")] }, "error")] },
  {
    name: "ensemble: an unknown output",
    fixture: "main",
    steps: [infer("chain", { inputs: [x("A"), x("B")], outputs: [{ name: "d" }] }, "error")],
  },
  {
    name: "ensemble: too large a batch",
    fixture: "main",
    steps: [infer("batched_over_plain", { inputs: [input("A", "FP32", [3, 3], Array(9).fill(1))] }, "error")],
  },
  {
    name: "ensemble: the statistics of its steps are theirs",
    fixture: "main",
    steps: [get("/v2/models/nested/stats", "status")],
  },
];
