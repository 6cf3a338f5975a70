/** Whose fault it is, in the words that SageMaker's failure reasons begin with. */
export type TransformFault = "ClientError" | "AlgorithmError" | "InternalServerError";

/** Why an object or a whole job failed, as a sentence for the job's FailureReason. */
export class TransformError extends Error {
  readonly fault: TransformFault;

  constructor(fault: TransformFault, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "TransformError";
    this.fault = fault;
  }
}

export function clientError(message: string, options?: ErrorOptions): TransformError {
  return new TransformError("ClientError", message, options);
}
