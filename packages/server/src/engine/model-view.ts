import type { ModelConfig } from "../modelconfig/index.ts";

/**
 * A description of a model version for the protocols. It is created once and is immutable plain data, because front-end threads have copies
 * of it.
 */
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
