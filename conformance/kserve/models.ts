import {
  ensemble,
  pair,
  python,
  type ModelSource,
  type PythonOptions,
  type Step,
  type Tensor,
} from "./model-source.ts";

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

/** Returns two steps that read the same tensors, and two that read the outputs of the first ones. */
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

/** All models of fixtures, by directory name. */
export const models = {
  spoils: python("spoils.py", spoilsTensors),
  spoilt_fan: ensemble({ inputs: spoilInputs, outputs: saws }, spoilSteps({})),
  /** The tensors between the steps, which the steps overwrite, are outputs too. */
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
  sends_async: python("sends_async.py", { inputs: [["KIND", "INT32", [1]]], outputs: [["OUT", "INT32", [1]]] }),
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
  refusing_step: ensemble({ inputs: [["K", "INT32", [1]]], outputs: [["R", "INT32", [1]]] }, [
    { model: "odd_outputs", inputs: { KIND: "K" }, outputs: { OUT: "T" } },
    { model: "errors", inputs: { KIND: "T" }, outputs: { OUT: "R" } },
  ]),
  missing_output: ensemble({ inputs: [["K", "INT32", [1]]], outputs: [["R", "INT32", [1]]] }, [
    { model: "odd_outputs", inputs: { KIND: "K" }, outputs: { OUT: "R" } },
  ]),
} as const satisfies Record<string, ModelSource>;
