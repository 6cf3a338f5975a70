import { InstanceFailure, ModelDataError } from "../instances/index.ts";

const logLinesMax = 8;

/** SageMaker calls the containers of a pipeline by their names alone. */
function whoOf({ containerName }: InstanceFailure): string {
  return containerName === "primary" ? "The primary container" : `The ${containerName}`;
}

/** FailureReason: the sentence that people search for, then what the container said last. */
export function failureSentence(error: unknown, variantName: string): string {
  if (error instanceof ModelDataError) return error.message;
  if (error instanceof InstanceFailure) {
    const lines = error.lastLines.slice(-logLinesMax).join("\n");
    return (
      `${whoOf(error)} for production variant ${variantName} did not pass the ping health check. ` +
      "Please check CloudWatch logs for this endpoint. " +
      `(${error.message}${lines === "" ? "" : `; last lines:\n${lines}`})`
    );
  }
  return `Production variant ${variantName} could not be started: ${error instanceof Error ? error.message : String(error)}`;
}
