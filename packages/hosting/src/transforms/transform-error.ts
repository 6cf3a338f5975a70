/** The kind of a failure: the first word of SageMaker's failure reasons. */
export type TransformFault = "ClientError" | "AlgorithmError" | "InternalServerError";

/** The failure of an object or a whole job, as a sentence for the job's FailureReason. */
export class TransformError extends Error {
  readonly fault: TransformFault;

  constructor(fault: TransformFault, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "TransformError";
    this.fault = fault;
  }
}

export function transformClientError(message: string, options?: ErrorOptions): TransformError {
  return new TransformError("ClientError", message, options);
}
