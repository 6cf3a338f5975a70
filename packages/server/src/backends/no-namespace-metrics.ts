import { InferenceError } from "@galatea/base";
import type { NamespaceMetrics } from "./namespace-metrics.ts";

/** Metrics that are never read: for model checks and tests. */
export const noNamespaceMetrics: NamespaceMetrics = {
  family() {
    throw new InferenceError("UNAVAILABLE", "there are no metrics here");
  },
};
