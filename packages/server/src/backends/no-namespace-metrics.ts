import { InferenceError } from "@galatea/base";
import type { NamespaceMetrics } from "./namespace-metrics.ts";

/** The door where nobody reads what models count: for what is only looked at, and for tests. */
export const noNamespaceMetrics: NamespaceMetrics = {
  family() {
    throw new InferenceError("UNAVAILABLE", "there are no metrics here");
  },
};
