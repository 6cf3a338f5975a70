/** One model directory of the suite: its config.pbtxt, the program of each version, and further files. */
export interface ModelSource {
  /** null: a directory without config.pbtxt. */
  readonly config: string | null;
  /** File of `models/` that becomes each version's model.py; null for ensembles, whose version directory is empty. */
  readonly program: string | null;
  readonly versions?: readonly number[];
  /** Path inside the model directory to text. */
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

const python = (program: string, options: PythonOptions, rest: Partial<ModelSource> = {}): ModelSource => ({
  config: pythonConfig(options),
  program,
  ...rest,
});

interface Step {
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

const pair = (type: string, dims: readonly number[]): PythonOptions => ({
  inputs: [
    ["INPUT0", type, dims],
    ["INPUT1", type, dims],
  ],
  outputs: [
    ["OUTPUT0", type, dims],
    ["OUTPUT1", type, dims],
  ],
});

const jsonDatatypes = [
  "BOOL",
  "UINT8",
  "UINT16",
  "UINT32",
  "UINT64",
  "INT8",
  "INT16",
  "INT32",
  "INT64",
  "FP32",
  "FP64",
];
const labels = "zero\none\ntwo\nthree\n";
const delayBatch = (more: string, batch = 4): PythonOptions => ({
  inputs: [["DELAY_MS", "INT32", [1]]],
  outputs: [
    ["REQUESTS", "INT32", [1]],
    ["ROWS", "INT32", [1]],
  ],
  batch,
  more,
});

const fanSteps: readonly Step[] = [
  { model: "add_sub", inputs: { INPUT0: "A", INPUT1: "A" }, outputs: { OUTPUT0: "LEFT" } },
  { model: "add_sub", inputs: { INPUT0: "A", INPUT1: "LEFT" }, outputs: { OUTPUT0: "RIGHT" } },
  { model: "add_sub", inputs: { INPUT0: "LEFT", INPUT1: "RIGHT" }, outputs: { OUTPUT0: "BOTH" } },
];

const spoilsTensors: PythonOptions = {
  inputs: [
    ["X", "FP32", [-1]],
    ["TEXT", "STRING", [-1], "optional: true"],
  ],
  outputs: [
    ["SAW", "STRING", [1]],
    ["SEEN", "FP32", [-1]],
    ["SPOILT", "FP32", [-1]],
    ["TEXTS", "STRING", [-1]],
  ],
};

/** Two steps over the same tensors, and two over what the first made of them. */
const spoilSteps = (more: Readonly<Record<string, string>>): readonly Step[] => [
  {
    model: "spoils",
    inputs: { X: "A", TEXT: "T" },
    outputs: { SAW: "SAW1", SEEN: "SEEN1", SPOILT: "SPOILT1", TEXTS: "TEXTS1" },
  },
  { model: "spoils", inputs: { X: "A", TEXT: "T" }, outputs: { SAW: "SAW2", ...more } },
  { model: "spoils", inputs: { X: "SEEN1", TEXT: "TEXTS1" }, outputs: { SAW: "SAW3" } },
  { model: "spoils", inputs: { X: "SPOILT1", TEXT: "TEXTS1" }, outputs: { SAW: "SAW4" } },
  { model: "spoils", inputs: { X: "SEEN1", TEXT: "T" }, outputs: { SAW: "SAW5" } },
];
const spoilInputs: readonly Tensor[] = [
  ["A", "FP32", [-1]],
  ["T", "STRING", [-1]],
];
const streams = (more = ""): PythonOptions => ({
  inputs: [["CODE", "STRING", [1]]],
  outputs: [
    ["OUT", "STRING", [1]],
    ["MORE", "INT32", [1]],
    ["LARGE", "INT32", [-1]],
  ],
  more: `model_transaction_policy { decoupled: true } ${more}`,
});
const saws = [1, 2, 3, 4, 5].map((step): Tensor => [`SAW${step}`, "STRING", [1]]);

/** Every model that a fixture may hold, by directory name. */
export const models = {
  spoils: python("spoils.py", spoilsTensors),
  spoilt_fan: ensemble({ inputs: spoilInputs, outputs: saws }, spoilSteps({})),
  /** What lies between the steps, and is written over by them, are outputs too. */
  spoilt_open: ensemble(
    {
      inputs: spoilInputs,
      outputs: [
        ...saws,
        ["SEEN1", "FP32", [-1]],
        ["SPOILT1", "FP32", [-1]],
        ["TEXTS1", "STRING", [-1]],
        ["SEEN2", "FP32", [-1]],
      ],
    },
    spoilSteps({ SEEN: "SEEN2" }),
  ),
  evaluates: python("evaluates.py", { inputs: [["CODE", "STRING", [1]]], outputs: [["OUT", "STRING", [1]]] }),
  sends: python("sends.py", { inputs: [["KIND", "INT32", [1]]], outputs: [["OUT", "INT32", [1]]] }),
  streams: python("streams.py", streams()),
  streams_batch: python("streams.py", {
    ...streams("dynamic_batching { max_queue_delay_microseconds: 300000 preferred_batch_size: [2] }"),
    batch: 2,
  }),
  streams_async: python("streams_async.py", streams()),
  streams_counted: python("streams.py", streams()),
  add_sub: python("add_sub.py", pair("FP32", [4])),
  add_sub_batch: python("add_sub.py", { ...pair("INT32", [4]), batch: 4 }),
  identity_all: python("identity.py", {
    inputs: [...jsonDatatypes, "STRING", "FP16"].map(
      (type) => [`INPUT_${type}`, type, [-1], "optional: true"] as const,
    ),
    outputs: [...jsonDatatypes, "STRING", "FP16"].map((type) => [`OUTPUT_${type}`, type, [-1]] as const),
  }),
  identity_bf16: python("identity.py", {
    inputs: [["INPUT_BF16", "BF16", [-1]]],
    outputs: [["OUTPUT_BF16", "BF16", [-1]]],
  }),
  identity_matrix: python("identity.py", {
    inputs: [["INPUT0", "FP32", [-1, 3]]],
    outputs: [["OUTPUT0", "FP32", [-1, 3]]],
  }),
  identity_batch: python("identity.py", {
    inputs: [["INPUT0", "FP32", [-1]]],
    outputs: [["OUTPUT0", "FP32", [-1]]],
    batch: 8,
  }),
  identity_bytes: python("identity.py", {
    inputs: [["INPUT0", "STRING", [1]]],
    outputs: [["OUTPUT0", "STRING", [1]]],
    batch: 4,
  }),
  reshaped: python("identity.py", {
    inputs: [["INPUT0", "INT32", [1], "reshape { shape: [] }"]],
    outputs: [["OUTPUT0", "INT32", [1], "reshape { shape: [] }"]],
    batch: 4,
  }),
  errors: python("errors.py", { inputs: [["KIND", "INT32", [1]]], outputs: [["OUT", "INT32", [1]]] }),
  odd_outputs: python("odd_outputs.py", {
    inputs: [["KIND", "INT32", [1]]],
    outputs: [
      ["OUT", "INT32", [1]],
      ["SECOND", "INT32", [1]],
    ],
  }),
  report: python("report.py", {
    inputs: [["INPUT0", "FP32", [2]]],
    outputs: [
      ["REPORT", "STRING", [1]],
      ["OTHER", "STRING", [1]],
    ],
    batch: 4,
  }),
  optional: python("optional.py", {
    inputs: [
      ["A", "INT32", [2]],
      ["B", "INT32", [2], "optional: true"],
    ],
    outputs: [["OUT", "INT32", [2]]],
  }),
  scores: python(
    "scores.py",
    { inputs: [["INPUT0", "FP32", [4]]], outputs: [["SCORES", "FP32", [4], 'label_filename: "labels.txt"']] },
    { files: { "labels.txt": labels } },
  ),
  scores_batch: python("scores.py", {
    inputs: [["INPUT0", "INT32", [3]]],
    outputs: [["SCORES", "INT32", [3]]],
    batch: 4,
  }),
  upper: python("upper.py", { inputs: [["TEXT", "STRING", [-1]]], outputs: [["UPPER", "STRING", [-1]]] }),
  arguments: python(
    "arguments.py",
    {
      inputs: [],
      outputs: [["OUT", "STRING", [1]]],
      more: 'parameters { key: "constant" value { string_value: "42" } }',
    },
    {},
  ),
  versions: python(
    "version.py",
    { inputs: [["IN", "INT32", [1]]], outputs: [["OUT", "STRING", [1]]], more: "version_policy { all {} }" },
    { versions: [1, 3] },
  ),
  versions_latest: python(
    "version.py",
    { inputs: [["IN", "INT32", [1]]], outputs: [["OUT", "STRING", [1]]] },
    { versions: [2, 10] },
  ),
  auto: { config: 'backend: "python"\n', program: "auto.py" },
  auto_without_config: { config: null, program: "auto.py" },
  batches: python(
    "batch_size.py",
    delayBatch("dynamic_batching { preferred_batch_size: [4] max_queue_delay_microseconds: 5000000 }"),
  ),
  batches_plain: python("batch_size.py", delayBatch("dynamic_batching { }", 8)),
  queue_bound: python(
    "batch_size.py",
    delayBatch("dynamic_batching { default_queue_policy { max_queue_size: 1 } }", 1),
  ),
  queue_timeout: python(
    "batch_size.py",
    delayBatch(
      "dynamic_batching { default_queue_policy { timeout_action: REJECT default_timeout_microseconds: 150000 allow_timeout_override: true } }",
      1,
    ),
  ),
  chain: ensemble(
    {
      inputs: [
        ["A", "FP32", [4]],
        ["B", "FP32", [4]],
      ],
      outputs: [
        ["SUM", "FP32", [4]],
        ["LAST", "FP32", [4]],
      ],
    },
    [
      { model: "add_sub", inputs: { INPUT0: "A", INPUT1: "B" }, outputs: { OUTPUT0: "s", OUTPUT1: "d" } },
      { model: "add_sub", inputs: { INPUT0: "s", INPUT1: "d" }, outputs: { OUTPUT0: "SUM", OUTPUT1: "LAST" } },
    ],
  ),
  fan: ensemble({ inputs: [["A", "FP32", [4]]], outputs: [["BOTH", "FP32", [4]]] }, fanSteps),
  /** Tensors between the steps are outputs too. */
  fan_open: ensemble(
    {
      inputs: [["A", "FP32", [4]]],
      outputs: [
        ["LEFT", "FP32", [4]],
        ["RIGHT", "FP32", [4]],
        ["BOTH", "FP32", [4]],
      ],
    },
    fanSteps,
  ),
  nested: ensemble({ inputs: [["X", "FP32", [4]]], outputs: [["Y", "FP32", [4]]] }, [
    { model: "fan", inputs: { A: "X" }, outputs: { BOTH: "both" } },
    { model: "add_sub", inputs: { INPUT0: "both", INPUT1: "X" }, outputs: { OUTPUT0: "Y" } },
  ]),
  batched_over_plain: ensemble({ inputs: [["A", "FP32", [3]]], outputs: [["B", "FP32", [3]]], batch: 2 }, [
    { model: "identity_matrix", inputs: { INPUT0: "A" }, outputs: { OUTPUT0: "B" } },
  ]),
  failing_step: ensemble({ inputs: [["K", "INT32", [1]]], outputs: [["R", "INT32", [1]]] }, [
    { model: "errors", inputs: { KIND: "K" }, outputs: { OUT: "R" } },
  ]),
  missing_output: ensemble({ inputs: [["K", "INT32", [1]]], outputs: [["R", "INT32", [1]]] }, [
    { model: "odd_outputs", inputs: { KIND: "K" }, outputs: { OUT: "R" } },
  ]),
} as const satisfies Record<string, ModelSource>;

/** Directories that cannot be loaded, and what else the model control cases need. */
export const controlModels = {
  add_sub: models.add_sub,
  auto: models.auto,
  auto_without_config: models.auto_without_config,
  versions_latest: models.versions_latest,
  version_one_of_two: {
    ...models.versions,
    config: pythonConfig({
      inputs: [["IN", "INT32", [1]]],
      outputs: [["OUT", "STRING", [1]]],
      more: "version_policy { specific { versions: [1] } }",
    }),
  },
  chain: models.chain,
  raises_in_initialize: python("raises_in_initialize.py", pair("FP32", [1])),
  no_execute: python("no_execute.py", pair("FP32", [1])),
  syntax_error: {
    config: pythonConfig(pair("FP32", [1])),
    program: null,
    files: { "1/model.py": "class TritonPythonModel:\n    def execute(self, requests)\n        return []\n" },
  },
  no_class: { config: pythonConfig(pair("FP32", [1])), program: null, files: { "1/model.py": "x = 1\n" } },
  import_error: {
    config: pythonConfig(pair("FP32", [1])),
    program: null,
    files: { "1/model.py": "import a_module_nobody_has\n" },
  },
  no_version: { config: pythonConfig(pair("FP32", [1])), program: null, versions: [] },
  empty_directory: { config: null, program: null, versions: [] },
  platform_beside_backend: {
    config: `platform: "python"\n${pythonConfig(pair("FP32", [4]))}`,
    program: "add_sub.py",
  },
  kind_gpu: python("add_sub.py", { ...pair("FP32", [4]), more: "instance_group { count: 1 kind: KIND_GPU }" }),
  gpu_accelerator: python("add_sub.py", {
    ...pair("FP32", [4]),
    more: 'optimization { execution_accelerators { gpu_execution_accelerator { name: "tensorrt" } } }',
  }),
  decoupled: python("decoupled.py", {
    inputs: [["IN", "INT32", [1]]],
    outputs: [["OUT", "INT32", [1]]],
    more: "model_transaction_policy { decoupled: true }",
  }),
  orphan_ensemble: ensemble({ inputs: [["A", "FP32", [1]]], outputs: [["B", "FP32", [1]]] }, [
    { model: "nobody", inputs: { X: "A" }, outputs: { Y: "B" } },
  ]),
  ...brokenConfigs(),
} satisfies Record<string, ModelSource>;

interface WarmUp {
  readonly data: string;
  readonly type?: string;
  readonly dims?: string;
  readonly batch?: number;
  readonly count?: number;
  readonly input?: string;
}

const sample = (name: string, warm: WarmUp) =>
  `model_warmup { name: "${name}" batch_size: ${warm.batch ?? 1} count: ${warm.count ?? 0} inputs { key: "${warm.input ?? "IN"}" value { ` +
  `${warm.type === "" ? "" : `data_type: TYPE_${warm.type ?? "FP32"}`} dims: ${warm.dims ?? "[2]"} ${warm.data} } } }\n`;

const warmed = (
  samples: string,
  rest: Partial<ModelSource> & { readonly type?: string; readonly batch?: number; readonly more?: string } = {},
): ModelSource =>
  python(
    "warm_up.py",
    {
      inputs: [["IN", rest.type ?? "FP32", [2], rest.more ?? ""]],
      outputs: [["SEEN", "STRING", [1]]],
      batch: rest.batch ?? 4,
      more: samples,
    },
    rest.files === undefined ? {} : { files: rest.files },
  );

const zero = "zero_data: true";
const file = 'input_data_file: "sample"';
/** Bytes of two FP32, of two elements of BYTES, and of less than two FP32. */
const floatsFile = { "warmup/sample": "AAAABBBB" };
const stringsFile = { "warmup/sample": "\x02\0\0\0ab\x01\0\0\0c" };

/** Models that are warmed up, by what is said of it; those that fail to load last. */
export const warmModels = {
  zeros: warmed(sample("s", { data: zero })),
  zeros_denied: warmed(sample("s", { data: "zero_data: false" })),
  batch_of_three: warmed(sample("s", { data: zero, batch: 3 })),
  batch_of_none: warmed(sample("s", { data: zero, batch: 0 })),
  counted: warmed(sample("s", { data: zero, batch: 2, count: 3 })),
  two_samples: warmed(sample("a", { data: zero }) + sample("b", { data: file, batch: 2 }), { files: floatsFile }),
  without_batching: warmed(sample("s", { data: zero }), { batch: 0 }),
  with_reshape: warmed(sample("s", { data: zero }), { more: "reshape { shape: [1, 2] }" }),
  longer_file: warmed(sample("s", { data: file }), { files: { "warmup/sample": "AAAABBBBCCCC" } }),
  empty_strings: warmed(sample("s", { data: zero, type: "STRING" }), { type: "STRING" }),
  random_strings: warmed(sample("s", { data: "random_data: true", type: "STRING" }), { type: "STRING" }),
  strings_of_file: warmed(sample("s", { data: file, type: "STRING" }), { type: "STRING", files: stringsFile }),
  failing: warmed(sample("a", { data: zero, batch: 2 }) + sample("b", { data: zero })),
  shorter_file: warmed(sample("s", { data: file }), { files: { "warmup/sample": "AAAA" } }),
  no_file: warmed(sample("s", { data: file })),
  file_elsewhere: warmed(sample("s", { data: 'input_data_file: "../../nobody"' })),
  no_data: warmed(sample("s", { data: "" })),
  no_datatype: warmed(sample("s", { data: zero, type: "" })),
  another_datatype: warmed(sample("s", { data: zero, type: "INT32" })),
  another_shape: warmed(sample("s", { data: zero, dims: "[3]" })),
  variable_shape: warmed(sample("s", { data: zero, dims: "[-1]" })),
  too_large: warmed(sample("s", { data: zero, batch: 8 })),
  no_inputs: warmed('model_warmup { name: "s" batch_size: 1 }\n'),
  ensemble: ensemble(
    { inputs: [["A", "FP32", [2]]], outputs: [["B", "STRING", [1]]], more: sample("s", { data: zero, input: "A" }) },
    [{ model: "without_batching", inputs: { IN: "A" }, outputs: { SEEN: "B" } }],
  ),
} satisfies Record<string, ModelSource>;

const versioned: PythonOptions = { inputs: [["IN", "INT32", [1]]], outputs: [["OUT", "STRING", [1]]] };
const over = (model: string) => ensemble(versioned, [{ model, inputs: { IN: "IN" }, outputs: { OUT: "OUT" } }]);

/** Models that change, with ensembles above them. */
export const reloadModels = {
  versions_latest: models.versions_latest,
  over_latest: over("versions_latest"),
  over_over: over("over_latest"),
  failing: { config: pythonConfig(versioned), program: null, files: { "1/model.py": "def broken(\n" } },
  over_failing: over("failing"),
  second_broken: python(
    "version.py",
    { ...versioned, more: "version_policy { all {} }" },
    { files: { "2/model.py": "def broken(\n" } },
  ),
  no_such_version: python("version.py", { ...versioned, more: "version_policy { specific { versions: [9] } }" }),
} satisfies Record<string, ModelSource>;

/** config.pbtxt broken in many ways; each is a model directory with a working program. */
function brokenConfigs(): Record<string, ModelSource> {
  const good = 'backend: "python"\n';
  const input = (text: string) =>
    `${good}max_batch_size: 0\ninput { ${text} }\noutput { name: "OUTPUT0" data_type: TYPE_FP32 dims: [1] }\n`;
  const output = (text: string) =>
    `${good}input { name: "INPUT0" data_type: TYPE_FP32 dims: [1] }\noutput { ${text} }\n`;
  const inputs =
    'input { name: "A" data_type: TYPE_FP32 dims: [1] }\noutput { name: "B" data_type: TYPE_FP32 dims: [1] }\n';
  const steps = (text: string) => `platform: "ensemble"\n${inputs}ensemble_scheduling { ${text} }\n`;
  const texts: Record<string, string> = {
    syntax: "name: \n",
    unknown_field: `${good}colour: "red"\n`,
    unclosed: `${good}input {\n`,
    wrong_type: `${good}max_batch_size: "eight"\n`,
    wrong_enum: input('name: "INPUT0" data_type: TYPE_FLOAT dims: [1]'),
    wrong_name: `name: "another"\n${good}${inputs}`,
    no_backend: inputs,
    unknown_backend: `backend: "nonesuch"\n${inputs}`,
    platform_only: `platform: "nonesuch_plan"\n${inputs}`,
    negative_batch: `${good}max_batch_size: -1\n${inputs}`,
    input_without_name: input("data_type: TYPE_FP32 dims: [1]"),
    input_without_type: input('name: "INPUT0" dims: [1]'),
    input_without_dims: input('name: "INPUT0" data_type: TYPE_FP32'),
    input_zero_dim: input('name: "INPUT0" data_type: TYPE_FP32 dims: [0]'),
    input_negative_dim: input('name: "INPUT0" data_type: TYPE_FP32 dims: [-2]'),
    input_empty_reshape: input('name: "INPUT0" data_type: TYPE_FP32 dims: [1] reshape { shape: [] }'),
    input_reshape_size: input('name: "INPUT0" data_type: TYPE_FP32 dims: [4] reshape { shape: [3] }'),
    input_reshape_variable: input('name: "INPUT0" data_type: TYPE_FP32 dims: [-1, 2] reshape { shape: [2, 2] }'),
    input_nhwc: input('name: "INPUT0" data_type: TYPE_FP32 dims: [4] format: FORMAT_NHWC'),
    input_shape_tensor: input('name: "INPUT0" data_type: TYPE_INT32 dims: [4] is_shape_tensor: true'),
    output_without_name: output("data_type: TYPE_FP32 dims: [1]"),
    output_without_type: output('name: "OUTPUT0" dims: [1]'),
    output_without_dims: output('name: "OUTPUT0" data_type: TYPE_FP32'),
    preferred_too_large: `${good}max_batch_size: 4\n${inputs}dynamic_batching { preferred_batch_size: [8] }\n`,
    preferred_zero: `${good}max_batch_size: 4\n${inputs}dynamic_batching { preferred_batch_size: [0] }\n`,
    priority_default: `${good}max_batch_size: 4\n${inputs}dynamic_batching { priority_levels: 2 }\n`,
    priority_policy: `${good}max_batch_size: 4\n${inputs}dynamic_batching { priority_levels: 2 default_priority_level: 1 priority_queue_policy { key: 5 value { } } }\n`,
    priority_ordering: `${good}max_batch_size: 4\n${inputs}dynamic_batching { priority_levels: 2 default_priority_level: 1 preserve_ordering: true }\n`,
    gpu_instances: `${good}${inputs}instance_group { kind: KIND_CPU gpus: [0] }\n`,
    platform_of_another_backend: `${good}platform: "onnxruntime_onnx"\n${inputs}`,
    platform_python_alone: `platform: "python"\n${inputs}`,
    platform_nobody_knows: `${good}platform: "nonesuch"\n${inputs}`,
    input_twice: `${good}${inputs}input { name: "A" data_type: TYPE_FP32 dims: [1] }\n`,
    output_twice: `${good}${inputs}output { name: "B" data_type: TYPE_FP32 dims: [1] }\n`,
    ensemble_without_steps: `platform: "ensemble"\n${inputs}`,
    ensemble_empty_steps: `platform: "ensemble"\n${inputs}ensemble_scheduling { }\n`,
    ensemble_with_backend: `platform: "ensemble"\nbackend: "python"\n${inputs}ensemble_scheduling { step { model_name: "add_sub" model_version: -1 } }\n`,
    ensemble_step_without_model: steps(
      'step { model_version: -1 input_map { key: "INPUT0" value: "A" } output_map { key: "OUTPUT0" value: "B" } }',
    ),
    ensemble_step_without_input: steps(
      'step { model_name: "add_sub" model_version: -1 output_map { key: "OUTPUT0" value: "B" } }',
    ),
    ensemble_step_without_output: steps(
      'step { model_name: "add_sub" model_version: -1 input_map { key: "INPUT0" value: "A" } }',
    ),
    ensemble_unwritten_output: steps(
      'step { model_name: "add_sub" model_version: -1 input_map { key: "INPUT0" value: "A" } output_map { key: "OUTPUT0" value: "C" } }',
    ),
    ensemble_written_twice: steps(
      'step { model_name: "add_sub" model_version: -1 input_map { key: "INPUT0" value: "A" } input_map { key: "INPUT1" value: "A" } output_map { key: "OUTPUT0" value: "B" } output_map { key: "OUTPUT1" value: "B" } }',
    ),
    ensemble_unmapped_input: steps(
      'step { model_name: "add_sub" model_version: -1 input_map { key: "INPUT0" value: "A" } output_map { key: "OUTPUT0" value: "B" } }',
    ),
    ensemble_unknown_input: steps(
      'step { model_name: "add_sub" model_version: -1 input_map { key: "INPUT0" value: "A" } input_map { key: "INPUT7" value: "A" } output_map { key: "OUTPUT0" value: "B" } }',
    ),
    ensemble_shapes: steps(
      'step { model_name: "add_sub" model_version: -1 input_map { key: "INPUT0" value: "A" } input_map { key: "INPUT1" value: "A" } output_map { key: "OUTPUT0" value: "B" } }',
    ),
    ensemble_with_instances: `${steps('step { model_name: "add_sub" model_version: -1 input_map { key: "INPUT0" value: "A" } output_map { key: "OUTPUT0" value: "B" } }')}instance_group { count: 2 }\n`,
  };
  return Object.fromEntries(
    Object.entries(texts).map(([name, config]) => [
      `broken_${name}`,
      { config, program: "add_sub.py" } satisfies ModelSource,
    ]),
  );
}
