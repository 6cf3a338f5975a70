import { InferenceError } from "../base/index.ts";
import type { ModelMetrics } from "./model-metrics.ts";

/** The door where nobody reads what models count: for what is only looked at, and for tests. */
export const noModelMetrics: ModelMetrics = {
  family() {
    throw new InferenceError("UNAVAILABLE", "there are no metrics here");
  },
};
