import type { ModelConfig } from "../modelconfig/index.ts";

/** A description of a model version for the protocols. Created once, immutable plain data: a front-end thread has a copy. */
export interface ModelView {
  readonly version: string;
  /** The configuration, complete with every default. */
  readonly config: ModelConfig;
  /** Labels by output name, for the classification extension. Outputs without a label file have no entry. */
  readonly labels: ReadonlyMap<string, readonly string[]>;
}

const noLabels: readonly string[] = [];

export function outputLabels(view: ModelView, output: string): readonly string[] {
  return view.labels.get(output) ?? noLabels;
}
