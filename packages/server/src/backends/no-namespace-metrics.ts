import { InferenceError } from "@galatea/base";
import type { NamespaceMetrics } from "./namespace-metrics.ts";

/** Metrics for model checks and tests, which create no metric. */
export const noNamespaceMetrics: NamespaceMetrics = {
  family() {
    throw new InferenceError("UNAVAILABLE", "custom metrics are not available while a model is only checked");
  },
};
