import { AwsError } from "@galatea/base";
import type { ModelRecord } from "../definitions/index.ts";
import type { InvocationRequest } from "../invocations/index.ts";

/** Refuses a request that names a container or a model where none can be named, or names none where one has to be. */
export function checkTargets(
  request: Pick<InvocationRequest, "targetModel" | "targetContainer" | "containerPath">,
  { containers, executionMode }: ModelRecord,
  endpointName: string,
): void {
  const refuse = (text: string) => {
    throw new AwsError("ValidationError", text);
  };
  const { targetModel, targetContainer, containerPath } = request;
  if (containerPath !== undefined && containers.length > 1) {
    refuse(`Endpoint ${endpointName} has several containers: ${containerPath} is asked of one alone.`);
  }
  const isDirect = executionMode === "Direct";
  if (!isDirect && targetContainer !== null) {
    refuse(
      `Endpoint ${endpointName} is not a multi-container endpoint with direct invocation and does not support target container hostname header.`,
    );
  }
  if (isDirect && targetContainer === null) {
    refuse(
      `Endpoint ${endpointName} is a multi-container endpoint with direct invocation, and requires a target container hostname header.`,
    );
  }
  const named = isDirect ? containers.filter(({ ContainerHostname: name }) => name === targetContainer) : containers;
  if (named.length === 0) {
    refuse(`Container ${targetContainer} not found for Request of endpoint ${endpointName}.`);
  }
  const isMultiModel = named.some(({ Mode: mode }) => mode === "MultiModel");
  if (isMultiModel && targetModel === null) {
    refuse(`Endpoint ${endpointName} is a multi-model endpoint, and requires a target model header.`);
  }
  if (!isMultiModel && targetModel !== null) {
    refuse(`Endpoint ${endpointName} is not a multi-model endpoint and does not support target model header.`);
  }
}
