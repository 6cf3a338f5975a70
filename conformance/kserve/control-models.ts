import { brokenConfigs } from "./broken-configs.ts";
import { ensemble, pair, python, pythonConfig, type ModelSource } from "./model-source.ts";
import { models } from "./models.ts";

/** Invalid model directories, and others that the model control cases need. */
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
  version_named_v1: {
    config: pythonConfig(pair("FP32", [4])),
    program: null,
    versions: [],
    files: { "v1/model.py": "" },
  },
  order_delays: python("add_sub.py", {
    ...pair("FP32", [4]),
    batch: 4,
    more: "dynamic_batching { preserve_ordering: true default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 1000 } }",
  }),
  order_without_timeout: python("add_sub.py", {
    ...pair("FP32", [4]),
    batch: 4,
    more: "dynamic_batching { preserve_ordering: true default_queue_policy { timeout_action: DELAY } }",
  }),
  order_delays_priority: python("add_sub.py", {
    ...pair("FP32", [4]),
    batch: 4,
    more: "dynamic_batching { preserve_ordering: true priority_levels: 1 default_priority_level: 1 priority_queue_policy { key: 1 value { timeout_action: DELAY default_timeout_microseconds: 1000 } } }",
  }),
  ...Object.fromEntries(
    [
      ["cpu_with_gpus", "kind: KIND_CPU gpus: [0]"],
      ["model_with_gpus", "kind: KIND_MODEL gpus: [0]"],
      ["gpu_that_is_none", "kind: KIND_GPU gpus: [-1]"],
    ].map(([name, group]) => [
      name,
      {
        ...python("add_sub.py", pair("FP32", [4])),
        config: pythonConfig(pair("FP32", [4])).replace("count: 1 kind: KIND_CPU", group as string),
      },
    ]),
  ),
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
