import { algorithmContainer, sparkExecution, xgboostBodyBytes, xgboostExecution } from "./algorithms/index.ts";
import type { ContainerKind } from "./container-kind.ts";
import { scriptContainer, scriptOrElse } from "./scripts/index.ts";
import { tensorflowServingContainer } from "./tensorflow-serving/index.ts";

/** The container kinds other than Triton's, by their names for `--container-kind`. */
export const containerKinds = {
  "scikit-learn": scriptContainer({ runner: "sklearn", framework: "sklearn" }),
  pytorch: scriptContainer({ runner: "pytorch_script", framework: "pytorch" }),
  "tensorflow-serving": tensorflowServingContainer,
  "linear-learner": algorithmContainer({ backend: "linear_learner", variables: [], execution: null }),
  xgboost: scriptOrElse(
    scriptContainer({ runner: "xgboost_script", framework: "xgboost" }),
    algorithmContainer({
      backend: "xgboost",
      variables: [
        "SAGEMAKER_INFERENCE_OUTPUT",
        "SAGEMAKER_INFERENCE_ENSEMBLE",
        "SAGEMAKER_BATCH",
        "SAGEMAKER_MULTI_MODEL",
      ],
      execution: xgboostExecution,
      bodyBytesMax: xgboostBodyBytes,
    }),
  ),
  "sparkml-serving": algorithmContainer({
    backend: "sparkml",
    variables: ["SAGEMAKER_SPARKML_SCHEMA"],
    execution: sparkExecution,
  }),
} as const satisfies Readonly<Record<string, ContainerKind>>;

export type ContainerKindName = keyof typeof containerKinds;
