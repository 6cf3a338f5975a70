import type { Hosting } from "../../../hosting/index.ts";
import type { OperationHandlers } from "../../wire/index.ts";
import { endpointConfigOperations } from "./endpoint-configs.ts";
import { endpointOperations } from "./endpoints.ts";
import { listOperations } from "./listings.ts";
import { modelOperations } from "./models.ts";
import { tagOperations } from "./tags.ts";

export function createSageMakerOperations(hosting: Hosting): OperationHandlers {
  return {
    ...modelOperations(hosting),
    ...endpointConfigOperations(hosting),
    ...endpointOperations(hosting),
    ...tagOperations(hosting),
    ...listOperations(hosting),
  };
}
