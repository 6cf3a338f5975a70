import { hostingArn, type HostingResource } from "@galatea/hosting";
import type { SagemakerOperations } from "../../spec/gen/sagemaker.ts";
import type { CallContext, OperationRows } from "../../wire/index.ts";

export type SageMakerRows = OperationRows<SagemakerOperations>;

/** The resource of an operation: its model, configuration or endpoint by name. */
export function arnOf(resource: HostingResource, name: string, { region, accountId }: CallContext): string {
  return hostingArn(resource, name, { region, accountId });
}
