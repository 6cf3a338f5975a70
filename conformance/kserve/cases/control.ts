import type { Case, Comparison, Difference, Step } from "../case.ts";
import { differs, get, infer, input, newer, post } from "../requests.ts";
import { controlModels } from "../control-models.ts";

const load = (model: string, body?: unknown, compare: Comparison = "bytes") =>
  post(`/v2/repository/models/${model}/load`, body, compare);
const unload = (model: string, body?: unknown, compare: Comparison = "bytes") =>
  post(`/v2/repository/models/${model}/unload`, body, compare);
const control = (name: string, ...steps: Step[]): Case => ({ name: `control: ${name}`, fixture: "control", steps });
const gone = (model: string) =>
  differs(get(`/v2/models/${model}/ready`, "error"), {
    row: "model-ready-lookup",
    status: 404,
    includes: ["Request for unknown model: "],
  });
const version = (model: string) => infer(model, { inputs: [input("IN", "INT32", [1], [0])] });
const auto = infer("auto", { inputs: [input("INPUT0", "FP32", [1, 4], [1, 2, 3, 4])] });

const overridden = JSON.stringify({
  backend: "python",
  max_batch_size: 0,
  version_policy: { all: {} },
  input: [{ name: "IN", data_type: "TYPE_INT32", dims: [1] }],
  output: [{ name: "OUT", data_type: "TYPE_STRING", dims: [1] }],
});
const program = (word: string) =>
  Buffer.from(
    `import numpy as np\nimport triton_python_backend_utils as pb_utils\n\n\nclass TritonPythonModel:\n    def execute(self, requests):\n        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array(["${word}"], dtype=object))]) for _ in requests]\n`,
  ).toString("base64");

export const modelControl: readonly Case[] = [
  {
    name: "control: load is not allowed without explicit mode",
    fixture: "main",
    steps: [post("/v2/repository/models/add_sub/load", undefined, "error")],
  },
  {
    name: "control: unload is not allowed without explicit mode",
    fixture: "main",
    steps: [post("/v2/repository/models/add_sub/unload", undefined, "error")],
  },
  { name: "index: all models", fixture: "main", steps: [post("/v2/repository/index", undefined)] },
  { name: "index: an empty object as body", fixture: "main", steps: [post("/v2/repository/index", "{}")] },
  { name: "index: only ready models", fixture: "partly", steps: [post("/v2/repository/index", { ready: true })] },
  {
    name: "index: ready is a string",
    fixture: "main",
    steps: [
      newer(
        post("/v2/repository/index", { ready: "yes" }, "error"),
        400,
        "Invalid value for 'ready': expected a boolean",
      ),
    ],
  },
  { name: "index: a body that is not JSON", fixture: "main", steps: [post("/v2/repository/index", "{", "error")] },
  {
    name: "index: of a named repository",
    fixture: "partly",
    steps: [post("/v2/repository/anything/index", undefined)],
  },
  { name: "index: GET is not allowed", fixture: "main", steps: [get("/v2/repository/index", "error")] },
  control("load, infer, unload, gone", load("auto"), auto, unload("auto"), gone("auto")),
  control(
    "load twice",
    load("versions_latest"),
    load("versions_latest"),
    version("versions_latest"),
    unload("versions_latest"),
  ),
  control(
    "load of an ensemble loads its steps, unload keeps them",
    load("chain"),
    get("/v2/models/chain/ready", "bytes"),
    unload("chain"),
    get("/v2/models/add_sub/ready", "bytes"),
  ),
  control("a version directory whose name is not a number", load("version_named_v1", undefined, "error")),
  ...[
    "order_delays",
    "order_without_timeout",
    "order_delays_priority",
    "cpu_with_gpus",
    "model_with_gpus",
    "gpu_that_is_none",
  ].map((name) =>
    control(name.replaceAll("_", " "), load(name, undefined, "error"), unload(name, undefined, "status")),
  ),
  {
    name: "control: a model that cannot be read is not in the index and does not affect readiness",
    fixture: "fresh",
    steps: [
      load("broken_unknown_field", undefined, "error"),
      load("add_sub", { parameters: { config: "{" } }, "error"),
      get("/v2/models/add_sub", "error"),
      get("/v2/models/broken_unknown_field/versions/1", "error"),
      post("/v2/repository/index", undefined),
      get("/v2/health/ready", "status"),
    ],
  },
  control("a policy with one version of two", load("version_one_of_two", undefined, "error")),
  control("unload of a model that is not loaded", unload("raises_in_initialize")),
  control("unload of an unknown model", unload("nobody")),
  control("load of an unknown model", load("nobody", undefined, "error")),
  control("load from a named repository", post("/v2/repository/here/models/auto/load", undefined, "error")),
  control("load with a body that is not JSON", load("auto", "{", "error")),
  control("load with an empty object", load("auto", "{}"), unload("auto")),
  control("load with an unknown parameter", load("auto", { parameters: { colour: "red" } }, "status")),
  control("load with a parameter that is a number", load("auto", { parameters: { config: 1 } }, "error")),
  control("load with a config that is not JSON", load("auto", { parameters: { config: "{" } }, "error")),
  control(
    "load with a config with an unknown field",
    load("auto", { parameters: { config: '{"colour":1}' } }, "error"),
  ),
  control(
    "load with a config with values instead of lists",
    load("auto", {
      parameters: {
        config: JSON.stringify({
          backend: "python",
          instance_group: { kind: "KIND_CPU", count: 2 },
          version_policy: { specific: { versions: 1 } },
        }),
      },
    }),
    get("/v2/models/auto/config", "map"),
    unload("auto"),
  ),
  control(
    "load with a file but without a config",
    load("auto", { parameters: { "file:1/model.py": program("file") } }, "error"),
  ),
  control(
    "load with a file outside the model directory",
    load("auto", { parameters: { config: overridden, "file:../../x/model.py": program("x") } }, "error"),
  ),
  control(
    "load with another batch size",
    load("auto", { parameters: { config: JSON.stringify({ backend: "python", max_batch_size: 2 }) } }, "status"),
    get("/v2/models/auto/config", "map"),
    unload("auto"),
  ),
  control(
    "load from files only",
    load("made_up", { parameters: { config: overridden, "file:1/model.py": program("from a file") } }),
    version("made_up"),
    get("/v2/models/made_up"),
    unload("made_up"),
  ),
  control(
    "unload with unload_dependents of a wrong type",
    newer(
      unload("auto", { parameters: { unload_dependents: 1 } }, "error"),
      400,
      "attempt to access JSON non-boolean as boolean",
    ),
  ),
  control(
    "unload with dependents unloads the steps",
    load("chain"),
    unload("chain", { parameters: { unload_dependents: true } }),
    gone("chain"),
  ),
  control(
    "a config with a platform and the backend of the same name",
    load("platform_beside_backend"),
    get("/v2/models/platform_beside_backend/config", "map"),
    get("/v2/models/platform_beside_backend"),
    unload("platform_beside_backend"),
  ),
  control(
    "instances on a GPU that does not exist",
    differs(load("kind_gpu", undefined, "error"), { row: "kind-gpu", status: 200, includes: [] }),
    unload("kind_gpu", undefined, "status"),
  ),
  control(
    "a GPU accelerator without a GPU",
    load("gpu_accelerator"),
    get("/v2/models/gpu_accelerator/config", "map"),
    unload("gpu_accelerator"),
  ),
  control("a path in the name", post("/v2/repository/models/..%2Fadd_sub/load", undefined, "error")),
];

const refusedOtherwise: Readonly<Record<string, Difference>> = {
  broken_input_twice: { row: "one-name-twice", status: 400, includes: ["model input 'A' is specified more than once"] },
  broken_output_twice: {
    row: "one-name-twice",
    status: 400,
    includes: ["model output 'B' is specified more than once"],
  },
  import_error: {
    row: "missing-module",
    status: 400,
    includes: [
      "No module named 'a_module_nobody_has'. Add its package with --python-packages,",
      "1/model.py(1): <module>",
    ],
  },
  no_execute: { row: "newer-release", status: 400, includes: ["does not implement `execute` method"] },
};

/** If Triton only reports that it failed to poll, the recorded text is a prefix of ours. */
export const brokenModels: readonly Case[] = Object.keys(controlModels)
  .filter(
    (name) =>
      name.startsWith("broken_") ||
      ["raises_in_initialize", "no_execute", "syntax_error", "no_class", "import_error", "orphan_ensemble"].includes(
        name,
      ),
  )
  .map((name) => {
    const step = load(name, undefined, "error");
    const difference = refusedOtherwise[name];
    return {
      name: `broken: ${name.replace("broken_", "").replaceAll("_", " ")}`,
      fixture: "control",
      steps: [difference === undefined ? step : differs(step, difference)],
    };
  });
