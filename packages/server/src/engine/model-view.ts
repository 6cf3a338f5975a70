import type { ModelConfig } from "../modelconfig/index.ts";

/**
 * What is told of a model's version to whoever serves its requests. It is made once, never changes, and is plain data: a front end in
 * another thread holds a copy.
 */
export interface ModelView {
  readonly version: string;
  /** With every default filled in. */
  readonly config: ModelConfig;
  /** Output name to its labels, for the classification extension; outputs without a label file are not among them. */
  readonly labels: ReadonlyMap<string, readonly string[]>;
}

const noLabels: readonly string[] = [];

export function labelsOf(view: ModelView, output: string): readonly string[] {
  return view.labels.get(output) ?? noLabels;
}
