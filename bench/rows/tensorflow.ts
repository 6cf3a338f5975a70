import { frameworkRow } from "../framework-bench.ts";

/** SavedModels served by us and by Triton's Python backend, with the same TensorFlow. */
export const tensorflowRow = frameworkRow({
  framework: "tensorflow",
  label: "TensorFlow",
  library: "TensorFlow",
  writer: "write_savedmodels.py",
  input: "x",
  small: { loaded: "a small SavedModel", requested: "small SavedModel" },
  large: {
    model: "large",
    shape: [96, 96, 3],
    loaded: "Inception v3 (96 MB)",
    requested: "Inception v3 as a SavedModel, 96 by 96",
  },
  count: 6,
});
