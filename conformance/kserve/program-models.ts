import { ensemble, type ModelSource, type PythonOptions, pythonConfig } from "./model-source.ts";

const imports = "import numpy as np\nimport triton_python_backend_utils as pb_utils\n\n\n";
const execute =
  '    def execute(self, requests):\n        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", r.inputs()[0].as_numpy())]) for r in requests]\n';
const indented = (body: string) => `        ${body.replaceAll("\n", "\n        ")}\n`;

const pair = (dims: readonly number[]): PythonOptions => ({
  inputs: [["IN", "FP32", dims]],
  outputs: [["OUT", "FP32", dims]],
});
const configured = pythonConfig(pair([1]));

const program = (text: string, config = configured, files: Readonly<Record<string, string>> = {}): ModelSource => ({
  config,
  program: null,
  files: { "1/model.py": imports + text, ...files },
});

/** Returns a model whose `auto_complete_config` is `body`. */
const completes = (body: string, config = 'backend: "python"\n'): ModelSource =>
  program(
    `class TritonPythonModel:\n    @staticmethod\n    def auto_complete_config(config):\n${indented(body)}\n${execute}`,
    config,
  );

const both =
  'config.add_input({"name": "IN", "data_type": "TYPE_FP32", "dims": [1]})\nconfig.add_output({"name": "OUT", "data_type": "TYPE_FP32", "dims": [1]})\n';
const input = (text: string, config?: string) => completes(`config.add_input(${text})\nreturn config`, config);
const output = (text: string) => completes(`config.add_output(${text})\nreturn config`);
const policy = (text: string) => completes(`${both}config.set_model_transaction_policy(${text})\nreturn config`);

/** Returns a model whose `initialize` is `body`. */
const initializes = (body: string, files: Readonly<Record<string, string>> = {}, before = ""): ModelSource =>
  program(
    `${before}class TritonPythonModel:\n    def initialize(self, args):\n${indented(body)}\n${execute}`,
    configured,
    files,
  );

const over = (step: string, dims: readonly number[] = [1], batch = 0): ModelSource =>
  ensemble({ ...pair(dims), batch }, [{ model: step, inputs: { IN: "IN" }, outputs: { OUT: "OUT" } }]);

/**
 * Programs whose load prints or reports something, by directory name; those with the prefix `step_` are steps of
 * ensembles.
 */
export const programModels = {
  completes_nothing: completes("pass"),
  completes_dict: completes("return config.as_dict()"),
  completes_no_policy: policy("{}"),
  completes_policy: policy('{"decoupled": False}'),
  completes_other_policy: policy('{"decoupled": False, "x": 1}'),
  completes_policy_number: policy("5"),
  completes_changed_policy: completes(
    `${both}config.set_model_transaction_policy({"decoupled": False})\nreturn config`,
    'backend: "python"\nmodel_transaction_policy { decoupled: true }\n',
  ),
  completes_input_property: input('{"name": "IN", "data_type": "TYPE_FP32", "dims": [1], "more": 1}'),
  completes_output_property: output('{"name": "OUT", "data_type": "TYPE_FP32", "dims": [1], "optional": True}'),
  completes_without_name: input('{"data_type": "TYPE_FP32", "dims": [1]}'),
  completes_without_type: input('{"name": "IN", "dims": [1]}'),
  completes_without_dims: output('{"name": "OUT", "data_type": "TYPE_FP32"}'),
  completes_other_type: input('{"name": "IN", "data_type": "TYPE_INT32", "dims": [1]}', configured),
  completes_other_dims: input('{"name": "IN", "data_type": "TYPE_FP32", "dims": [2]}', configured),
  completes_other_optional: input(
    '{"name": "IN", "data_type": "TYPE_FP32", "dims": [1], "optional": True}',
    configured,
  ),
  completes_optional: completes(
    'config.add_input({"name": "IN", "data_type": "TYPE_FP32", "dims": [1], "optional": True})\nconfig.add_output({"name": "OUT", "data_type": "TYPE_FP32", "dims": [1]})\nreturn config',
  ),
  completes_unknown_type: completes(both.replace("TYPE_FP32", "FP32") + "return config"),
  completes_text_dims: completes(`${both.replace("[1]", '"x"')}return config`),
  completes_with_exception: completes("raise ValueError()"),
  package: initializes('import sys\nraise RuntimeError(sys.modules["1"].WORD + " " + __name__)', {
    "1/__init__.py": 'WORD = "ran"\n',
  }),
  package_raises: initializes("pass", { "1/__init__.py": 'raise RuntimeError("in the package")\n' }),
  package_relative: initializes(
    'raise RuntimeError("read " + WORD)',
    { "1/other.py": 'WORD = "it"\n' },
    "from .other import WORD\n\n",
  ),
  helper_raises: initializes(
    "pass",
    { "1/helper.py": 'def fail():\n    raise ValueError("in the helper")\n\n\nfail()\n' },
    "import helper\n\n",
  ),
  initializes_with_exception: initializes("raise ValueError()"),
  initializes_with_unsupported: initializes('pb_utils.Tensor("x", np.array([1j]))'),
  initializes_with_unknown: initializes('pb_utils.triton_string_to_numpy("x")'),
  answers_asynchronously: program(
    'class TritonPythonModel:\n    async def execute(self, requests):\n        raise ValueError("asynchronously")\n',
  ),
  step_wide: program(`class TritonPythonModel:\n${execute}`, pythonConfig(pair([16]))),
  step_wide_batch: program(`class TritonPythonModel:\n${execute}`, pythonConfig({ ...pair([16]), batch: 4 })),
  narrow: over("step_wide", [4]),
  narrow_batch: over("step_wide_batch", [4], 4),
  narrow_over_batch: over("step_wide_batch", [4]),
  circle_of_itself: over("circle_of_itself"),
  circle: over("step_of_circle"),
  step_of_circle: over("circle"),
} satisfies Record<string, ModelSource>;
