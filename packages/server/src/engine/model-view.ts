import type { ModelConfig } from "../modelconfig/index.ts";

/**
 * A description of a model version for the code that serves its requests. Created once, immutable, plain data: a front end in another
 * thread has a copy.
 */
export interface ModelView {
  readonly version: string;
  /** Complete with every default. */
  readonly config: ModelConfig;
  /** Labels by output name, for the classification extension; outputs without a label file have no entry. */
  readonly labels: ReadonlyMap<string, readonly string[]>;
}

const noLabels: readonly string[] = [];

export function labelsOf(view: ModelView, output: string): readonly string[] {
  return view.labels.get(output) ?? noLabels;
}
