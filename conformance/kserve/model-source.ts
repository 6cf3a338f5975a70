/** A model directory of the suite: its config.pbtxt, the program of each version, and further files. */
export interface ModelSource {
  /** The text of config.pbtxt; null for a directory without it. */
  readonly config: string | null;
  /** The file of `models/` that is each version's model.py; null for ensembles, whose version directories are empty. */
  readonly program: string | null;
  readonly versions?: readonly number[];
  /** Further files: text by path inside the model directory. */
  readonly files?: Readonly<Record<string, string>>;
}

export type Tensor = readonly [name: string, datatype: string, dims: readonly number[], more?: string];

const io = (field: "input" | "output", tensors: readonly Tensor[]) =>
  tensors
    .map(
      ([name, type, dims, more]) =>
        `${field} { name: "${name}" data_type: TYPE_${type} dims: [${dims.join(", ")}] ${more ?? ""} }`,
    )
    .join("\n");

export interface PythonOptions {
  readonly inputs: readonly Tensor[];
  readonly outputs: readonly Tensor[];
  readonly batch?: number;
  readonly more?: string;
}

export const pythonConfig = (options: PythonOptions) => `backend: "python"
max_batch_size: ${options.batch ?? 0}
${io("input", options.inputs)}
${io("output", options.outputs)}
instance_group { count: 1 kind: KIND_CPU }
${options.more ?? ""}
`;

export const python = (program: string, options: PythonOptions, rest: Partial<ModelSource> = {}): ModelSource => ({
  config: pythonConfig(options),
  program,
  ...rest,
});

export interface Step {
  readonly model: string;
  readonly inputs: Readonly<Record<string, string>>;
  readonly outputs: Readonly<Record<string, string>>;
}

const mapping = (field: string, map: Readonly<Record<string, string>>) =>
  Object.entries(map)
    .map(([key, value]) => `${field} { key: "${key}" value: "${value}" }`)
    .join(" ");

export const ensemble = (options: PythonOptions, steps: readonly Step[]): ModelSource => ({
  config: `platform: "ensemble"
max_batch_size: ${options.batch ?? 0}
${io("input", options.inputs)}
${io("output", options.outputs)}
ensemble_scheduling {
${steps
  .map(
    (step) =>
      `step { model_name: "${step.model}" model_version: -1 ${mapping("input_map", step.inputs)} ${mapping("output_map", step.outputs)} }`,
  )
  .join("\n")}
}
${options.more ?? ""}
`,
  program: null,
});

export const pair = (type: string, dims: readonly number[]): PythonOptions => ({
  inputs: [
    ["INPUT0", type, dims],
    ["INPUT1", type, dims],
  ],
  outputs: [
    ["OUTPUT0", type, dims],
    ["OUTPUT1", type, dims],
  ],
});
