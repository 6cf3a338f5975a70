import { controlModels } from "./control-models.ts";
import { python, pythonConfig, type ModelSource, type PythonOptions } from "./model-source.ts";
import { models } from "./models.ts";

const codeInText: PythonOptions = { inputs: [["CODE", "STRING", [1]]], outputs: [["OUT", "STRING", [1]]] };
const inLife = (text: string): ModelSource => ({
  config: pythonConfig(codeInText),
  program: null,
  files: {
    "1/model.py": `import numpy as np\nimport triton_python_backend_utils as pb_utils\n\n\nclass TritonPythonModel:\n${text}    def execute(self, requests):\n        return [pb_utils.InferenceResponse([]) for _ in requests]\n`,
  },
});
const callInLife =
  '        request = pb_utils.InferenceRequest(model_name="upper", requested_output_names=["UPPER"], inputs=[])\n        raise RuntimeError("called: %s" % request.exec().has_error())\n';

/** Models that call other models, and the called models. */
export const blsModels = {
  add_sub: models.add_sub,
  upper: models.upper,
  errors: models.errors,
  report: models.report,
  chain: models.chain,
  streams: models.streams,
  spoils: models.spoils,
  identity_all: models.identity_all,
  identity_matrix: models.identity_matrix,
  calls: python("calls.py", codeInText),
  calls_async: python("calls_async.py", codeInText),
  comes: models.add_sub,
  not_loaded: models.add_sub,
  raises_in_initialize: controlModels.raises_in_initialize,
  calls_in_initialize: inLife(`    def initialize(self, args):\n${callInLife}\n`),
  calls_in_completion: inLife(
    `    @staticmethod\n    def auto_complete_config(config):\n${callInLife}        return config\n\n`,
  ),
  controls_in_initialize: inLife(
    '    def initialize(self, args):\n        raise RuntimeError("ready: %s" % pb_utils.is_model_ready("add_sub"))\n\n',
  ),
} as const satisfies Record<string, ModelSource>;
