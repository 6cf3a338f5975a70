import type { OnnxModel } from "@galatea/server/onnx-file";

const floats = (...values: readonly number[]) => new Uint8Array(Float32Array.from(values).buffer);

/** The model in the templates of `galatea new`: scores = features x weights + bias, which favors the label of the largest feature. */
export const classifier: OnnxModel = {
  graphName: "classifier",
  opsets: { "": 17 },
  inputs: [{ name: "features", type: "FLOAT", dims: ["batch", 4] }],
  outputs: [{ name: "scores", type: "FLOAT", dims: ["batch", 3] }],
  constants: [
    { name: "weights", type: "FLOAT", dims: [4, 3], bytes: floats(1, 0, 0, 0, 1, 0, 0, 0, 1, 0.5, 0.5, 0.5) },
    { name: "bias", type: "FLOAT", dims: [3], bytes: floats(0.1, 0.2, 0.3) },
  ],
  operators: [
    { operator: "Gemm", domain: "", inputs: ["features", "weights", "bias"], outputs: ["scores"], attributes: {} },
  ],
};
