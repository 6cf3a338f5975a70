import { hostingArn, type HostingResource } from "@galatea/hosting";
import type { SagemakerOperations } from "../../spec/gen/sagemaker.ts";
import type { CallContext, OperationRows } from "../../wire/index.ts";

export type SageMakerRows = OperationRows<SagemakerOperations>;

/** Returns the ARN of a model, an endpoint configuration or an endpoint by name. */
export function resourceArnOf(resource: HostingResource, name: string, { region, accountId }: CallContext): string {
  return hostingArn(resource, name, { region, accountId });
}
