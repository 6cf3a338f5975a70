import { type OnnxModel, type OnnxGraph, writeOnnxFile } from "@galatea/server/onnx-file";

/** Small ONNX models for tests that harm their process. */

function operator(name: string, inputs: readonly string[], outputs: readonly string[], attributes = {}) {
  return { operator: name, domain: "", inputs, outputs, attributes };
}

const smallest = -2_147_483_648;

/** y = x / -1 in INT32: for the smallest number the quotient overflows, and the processor raises SIGFPE. */
export const dividing: Partial<OnnxModel> = {
  graphName: "dividing",
  inputs: [
    { name: "x", type: "INT32", dims: ["n"] },
    { name: "by", type: "INT32", dims: ["n"] },
  ],
  outputs: [{ name: "y", type: "INT32", dims: ["n"] }],
  operators: [operator("Div", ["x", "by"], ["y"])],
};

export const deadlyInput = { x: [smallest], by: [-1] };

/** A division of constants, which the library evaluates when it loads the model. */
export const dividingAtLoad: Partial<OnnxModel> = {
  graphName: "dividing at load",
  inputs: [{ name: "x", type: "INT32", dims: ["n"] }],
  outputs: [{ name: "y", type: "INT32", dims: ["n"] }],
  constants: [
    { name: "a", type: "INT32", dims: [1], bytes: new Uint8Array(Int32Array.of(smallest).buffer) },
    { name: "b", type: "INT32", dims: [1], bytes: new Uint8Array(Int32Array.of(-1).buffer) },
  ],
  operators: [operator("Div", ["a", "b"], ["c"]), operator("Add", ["x", "c"], ["y"])],
};

const loopBody: OnnxGraph = {
  graphName: "body",
  inputs: [
    { name: "turn", type: "INT64", dims: [] },
    { name: "goesOn", type: "BOOL", dims: [] },
    { name: "v", type: "FLOAT", dims: ["n"] },
  ],
  outputs: [
    { name: "stillGoesOn", type: "BOOL", dims: [] },
    { name: "w", type: "FLOAT", dims: ["n"] },
  ],
  constants: [],
  operators: [operator("Identity", ["goesOn"], ["stillGoesOn"]), operator("Neg", ["v"], ["w"])],
};

/** y = x after an endless loop. */
export const endless: Partial<OnnxModel> = {
  graphName: "endless",
  inputs: [{ name: "x", type: "FLOAT", dims: ["n"] }],
  outputs: [{ name: "y", type: "FLOAT", dims: ["n"] }],
  constants: [{ name: "always", type: "BOOL", dims: [], bytes: Uint8Array.of(1) }],
  operators: [operator("Loop", ["", "always", "x"], ["y"], { body: loopBody })],
};

/** y = the sum of x over `elements`, which takes as much memory during a run. */
export function expanding(elements: number): Partial<OnnxModel> {
  return {
    graphName: `expanding ${elements}`,
    inputs: [{ name: "x", type: "FLOAT", dims: [1] }],
    outputs: [{ name: "y", type: "FLOAT", dims: [1] }],
    constants: [
      { name: "to", type: "INT64", dims: [1], bytes: new Uint8Array(BigInt64Array.of(BigInt(elements)).buffer) },
    ],
    operators: [operator("Expand", ["x", "to"], ["many"]), operator("ReduceMax", ["many"], ["y"], { keepdims: 1n })],
  };
}

/** y = -x, for models that are harmless. */
export const harmless: Partial<OnnxModel> = {
  graphName: "harmless",
  inputs: [{ name: "x", type: "FLOAT", dims: ["n"] }],
  outputs: [{ name: "y", type: "FLOAT", dims: ["n"] }],
  operators: [operator("Neg", ["x"], ["y"])],
};

/** A chain of matrix products, about a millisecond each. */
export function slow(steps: number): Partial<OnnxModel> {
  const width = 512;
  const names = Array.from({ length: steps + 1 }, (_, step) => (step === 0 ? "x" : step === steps ? "y" : `v${step}`));
  return {
    graphName: `slow ${steps}`,
    inputs: [{ name: "x", type: "FLOAT", dims: [width, width] }],
    outputs: [{ name: "y", type: "FLOAT", dims: [width, width] }],
    operators: names.slice(1).map((name, step) => operator("MatMul", [names[step] as string, "x"], [name])),
  };
}

export async function writeModel(path: string, model: Partial<OnnxModel>): Promise<void> {
  await writeOnnxFile(path, completeModel(model));
}

export function completeModel(model: Partial<OnnxModel>): OnnxModel {
  return { graphName: "model", opsets: { "": 17 }, inputs: [], outputs: [], constants: [], operators: [], ...model };
}
