import { python, type ModelSource } from "./model-source.ts";

const counts = (instanceCount: number): ModelSource => {
  const model = python("counts.py", { inputs: [["CODE", "STRING", [1]]], outputs: [["OUT", "STRING", [1]]] });
  return { ...model, config: model.config!.replace("count: 1", `count: ${instanceCount}`) };
};

/** Models with custom metrics. */
export const metricModels: Readonly<Record<string, ModelSource>> = {
  counts: counts(1),
  counts_too: counts(1),
  counts_twice: counts(2),
  counts_and_dies: counts(1),
};
