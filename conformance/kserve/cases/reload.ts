import type { Case, Comparison, Step } from "../case.ts";
import { differs, get, infer, input, post } from "../requests.ts";

const load = (model: string, parameters?: object, compare: Comparison = "bytes") =>
  post(`/v2/repository/models/${model}/load`, parameters === undefined ? undefined : { parameters }, compare);
const unload = (model: string, parameters?: object) =>
  post(`/v2/repository/models/${model}/unload`, parameters === undefined ? undefined : { parameters }, "bytes");
const requested = { inputs: [input("IN", "INT32", [1], [0])] };
const responses = (model: string) => infer(model, requested);
const composed = (model = "over_latest") => infer(model, requested, "ensemble");
const gone = (model: string) => infer(model, requested, "error");
const reload = (name: string, ...steps: Step[]): Case => ({ name: `reload: ${name}`, fixture: "reload", steps });

const config = (more: object = {}) =>
  JSON.stringify({
    backend: "python",
    max_batch_size: 0,
    input: [{ name: "IN", data_type: "TYPE_INT32", dims: [1] }],
    output: [{ name: "OUT", data_type: "TYPE_STRING", dims: [1] }],
    ...more,
  });
const broken = Buffer.from("def broken(\n").toString("base64");
const mended = Buffer.from(
  `import numpy as np\nimport triton_python_backend_utils as pb_utils\n\n\nclass TritonPythonModel:\n    def execute(self, requests):\n        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.array(["mended"], dtype=object))]) for _ in requests]\n`,
).toString("base64");
const floats = { input: [{ name: "IN", data_type: "TYPE_FP32", dims: [1] }] };
const unknownStep = JSON.stringify({
  platform: "ensemble",
  input: [{ name: "IN", data_type: "TYPE_INT32", dims: [1] }],
  output: [{ name: "OUT", data_type: "TYPE_STRING", dims: [1] }],
  ensemble_scheduling: {
    step: [{ model_name: "nobody", model_version: -1, input_map: { IN: "IN" }, output_map: { OUT: "OUT" } }],
  },
});
/** Sends a request long after an unload, when Triton has ended the model's process. */
const settled = (path: string) => get(path, "bytes", { afterMs: 8000 });

/** Changes of models and of the ensembles that use them. */
export const reloads: readonly Case[] = [
  reload(
    "unload of a step unloads its ensembles, and the server stays ready",
    load("over_over"),
    composed("over_over"),
    unload("versions_latest"),
    gone("over_latest"),
    gone("over_over"),
    settled("/v2/health/ready"),
    post("/v2/repository/index", undefined),
  ),
  reload("load of the step loads its ensembles again", load("versions_latest"), composed(), composed("over_over")),
  reload(
    "an ensemble that was unloaded by request stays unloaded, with the ensembles that use it",
    unload("over_latest"),
    load("versions_latest"),
    responses("versions_latest"),
    gone("over_latest"),
    gone("over_over"),
    load("over_latest"),
    composed("over_over"),
  ),
  reload(
    "an ensemble that was unloaded by request while its step was unloaded stays unloaded",
    unload("versions_latest"),
    unload("over_over"),
    load("versions_latest"),
    composed(),
    gone("over_over"),
    load("over_over"),
  ),
  reload(
    "a step with another datatype makes its ensembles unavailable until the datatype fits again",
    load("versions_latest", { config: config(floats) }),
    gone("over_latest"),
    gone("over_over"),
    load("over_latest", undefined, "error"),
    load("versions_latest", { config: config() }),
    composed(),
    composed("over_over"),
  ),
  reload(
    "an ensemble that could not be loaded is loaded with its step",
    load("over_failing", undefined, "error"),
    gone("failing"),
    load("failing", { config: config() }, "error"),
    load("failing", { config: config(), "file:1/model.py": mended }),
    composed("over_failing"),
  ),
  reload(
    "the served version stays if its replacement fails",
    load("versions_latest", { config: config(), "file:11/model.py": broken }, "error"),
    responses("versions_latest"),
    composed(),
    get("/v2/models/versions_latest/ready", "bytes"),
    get("/v2/models/versions_latest"),
  ),
  reload(
    "either all versions are loaded or none",
    load("second_broken", undefined, "error"),
    gone("second_broken"),
    post("/v2/models/second_broken/versions/1/infer", requested, "error"),
  ),
  reload(
    "no version of the policy",
    load("no_such_version", undefined, "error"),
    gone("no_such_version"),
    post("/v2/repository/index", { ready: true }),
    load("versions_latest", { config: config({ version_policy: { specific: { versions: [9] } } }) }, "error"),
    responses("versions_latest"),
  ),
  reload("an unknown model stays unknown", load("nobody", undefined, "error"), gone("nobody")),
  reload(
    "an ensemble with a step that does not exist",
    load("over_latest", { config: unknownStep }, "error"),
    differs(composed(), { row: "ensemble-reload", status: 200, includes: ['"versions_latest/10"'] }),
    differs(composed("over_over"), { row: "ensemble-reload", status: 200, includes: ['"versions_latest/10"'] }),
  ),
];
