import { shellWord } from "../shell-words.ts";

/** A folder in `templates/` of this package, which `galatea new` copies. */
export interface Template {
  readonly folder: string;
  readonly about: string;
  /** Returns the commands to run next, in order. `program` is the command that starts this program. */
  readonly next: (path: string, program: string) => readonly string[];
}

const served = (model: string) => (path: string, program: string) => [
  `${program} serve --model-repository ${shellWord(path)}`,
  `curl -s localhost:8000/v2/models/${model}/infer -d @${shellWord(`${path}/request.json`)}`,
];

export const templates = {
  python: {
    folder: "python",
    about: "a Python model that adds and subtracts",
    next: served("add_sub"),
  },
  onnx: {
    folder: "onnx",
    about: "an ONNX model, with the tensors of its config.pbtxt",
    next: served("classifier"),
  },
  ensemble: {
    folder: "ensemble",
    about: "an ensemble: a Python model, an ONNX model and another Python model in a row",
    next: served("pipeline"),
  },
  script: {
    folder: "script",
    about: "an inference.py for SageMaker's scikit-learn image, and a boto3 script that deploys it",
    next: (path, program) => [
      `${program} model add sklearn`,
      `${program} up`,
      `python3 -m venv .venv && .venv/bin/pip install boto3`,
      `eval "$(${program} env)" && .venv/bin/python ${shellWord(`${path}/deploy.py`)}`,
    ],
  },
} as const satisfies Record<string, Template>;
