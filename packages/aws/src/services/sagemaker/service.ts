import type { Hosting } from "@galatea/hosting";
import sagemaker from "../../spec/gen/sagemaker.json" with { type: "json" };
import { asServiceModel } from "../../spec/index.ts";
import type { ModelledService } from "../../wire/index.ts";
import { endpointConfigOperations } from "./endpoint-configs.ts";
import { endpointOperations } from "./endpoints.ts";
import { inferenceComponentOperations } from "./inference-components.ts";
import { listOperations } from "./listings.ts";
import { modelOperations } from "./models.ts";
import { unsupportedOperations } from "./unsupported-operations.ts";
import type { SageMakerRows } from "./rows.ts";
import { tagOperations } from "./tags.ts";
import { transformJobOperations } from "./transform-jobs.ts";

export interface SageMakerDependencies {
  readonly hosting: Hosting;
}

export function sagemakerService({ hosting }: SageMakerDependencies) {
  const operations: SageMakerRows = {
    ...modelOperations(hosting),
    ...endpointConfigOperations(hosting),
    ...endpointOperations(hosting),
    ...inferenceComponentOperations(hosting),
    ...transformJobOperations(hosting),
    ...tagOperations(hosting),
    ...listOperations(hosting),
  };
  return {
    kind: "modelled",
    model: asServiceModel(sagemaker),
    scope: "sagemaker",
    iamPrefix: "sagemaker",
    validationCodes: { json: "ValidationException", query: "ValidationException" },
    operations,
    unsupportedOperations: unsupportedOperations,
  } as const satisfies ModelledService;
}
