import type { Case, Difference } from "../case.ts";
import { binary, binaryInput, differs, floats, get, infer, input } from "../requests.ts";

const x = (name: string) => input(name, "FP32", [4], [1, 2, 3, 4]);
const run = (name: string, model: string, body: object): Case => ({
  name: `ensemble: ${name}`,
  fixture: "main",
  steps: [infer(model, body, "ensemble")],
});
const refused = (name: string, model: string, body: object): Case => ({
  name: `ensemble: ${name}`,
  fixture: "main",
  steps: [infer(model, body, "error")],
});
const kind = (value: number) => ({ inputs: [input("K", "INT32", [1], [value])] });
const subset = (outputs: readonly string[], includes: readonly string[]): Case => {
  const difference: Difference = { row: "ensemble-output-subset", status: 200, includes };
  const body = { inputs: [x("A")], outputs: outputs.map((name) => ({ name })) };
  return {
    name: `ensemble: of outputs that later steps read, only ${outputs.join(" and ")}`,
    fixture: "main",
    steps: [differs(infer("fan_open", body, "ensemble"), difference)],
  };
};

export const ensembles: readonly Case[] = [
  run("two steps", "chain", { inputs: [x("A"), input("B", "FP32", [4], [1, 1, 1, 1])] }),
  run("the response has the request's id", "chain", { id: "e-1", inputs: [x("A"), x("B")] }),
  run("one of two outputs", "chain", { inputs: [x("A"), x("B")], outputs: [{ name: "LAST" }] }),
  run("fan-out and fan-in", "fan", { inputs: [x("A")] }),
  run("tensors between steps are outputs too", "fan_open", { inputs: [x("A")] }),
  run("an ensemble inside an ensemble", "nested", { inputs: [x("X")] }),
  run("a batching ensemble over a step that does not batch", "batched_over_plain", {
    inputs: [input("A", "FP32", [2, 3], [1, 2, 3, 4, 5, 6])],
  }),
  subset(["LEFT"], ['"LEFT"', "[2.0,4.0,6.0,8.0]"]),
  subset(["BOTH"], ['"BOTH"', "[5.0,10.0,15.0,20.0]"]),
  subset(["LEFT", "RIGHT"], ['"LEFT"', '"RIGHT"', "[3.0,6.0,9.0,12.0]"]),
  {
    name: "ensemble: binary",
    fixture: "main",
    steps: [
      binary(
        "batched_over_plain",
        { inputs: [binaryInput("A", "FP32", [1, 3], 12)], parameters: { binary_data_output: true } },
        [floats(1, 2, 3)],
      ),
    ],
  },
  refused("a step's error", "failing_step", kind(3)),
  refused("a step's exception", "failing_step", kind(11)),
  refused("a step's UNAVAILABLE", "failing_step", kind(4)),
  refused("a step that rejects the shape of its input", "refusing_step", kind(5)),
  refused("a step that rejects the datatype of its input", "refusing_step", kind(1)),
  refused("a step without input", "refusing_step", kind(3)),
  run("a step whose response lacks an output", "missing_output", kind(3)),
  run("a step whose output has another shape", "missing_output", kind(5)),
  refused("a wrong shape", "nested", { inputs: [input("X", "FP32", [3], [1, 2, 3])] }),
  refused("a missing input", "chain", { inputs: [x("A")] }),
  refused("an unknown output", "chain", { inputs: [x("A"), x("B")], outputs: [{ name: "d" }] }),
  refused("too large a batch", "batched_over_plain", { inputs: [input("A", "FP32", [3, 3], Array(9).fill(1))] }),
  {
    name: "ensemble: an ensemble has its own statistics",
    fixture: "main",
    steps: [get("/v2/models/nested/stats", "status")],
  },
];
