import { AwsError, unreachable } from "@galatea/base";

/** The outcome of an invocation, from which its metrics are derived. */
export type InvocationOutcome =
  /** The caller got the model's response. */
  | { readonly kind: "succeeded" }
  /**
   * The container failed. `status` is its response status if that is not 2xx, 502 for an invalid response, or 503 for
   * no response.
   */
  | { readonly kind: "model-error"; readonly status: number }
  /** The container did not respond within the time limit. */
  | { readonly kind: "timed-out" }
  /** The model's response is longer than the limit. */
  | { readonly kind: "response-too-long" }
  /** The response ended early, after its first chunk was sent to the caller. */
  | { readonly kind: "stream-failed" }
  /** The platform rejected the request for a reason other than the model. */
  | { readonly kind: "refused"; readonly status: number }
  /** The caller ended the request: its client disconnected or read too slowly, or the platform shuts down. */
  | { readonly kind: "cancelled" }
  /** The request was not sent and is retried on another instance. */
  | { readonly kind: "not-sent" };

/** The response status and the metrics of one outcome. */
export interface OutcomeReport {
  /** The HTTP status of the response; null if no response is sent. */
  readonly sentStatus: number | null;
  readonly Invocations: 0 | 1;
  readonly Invocation4XXErrors: 0 | 1;
  readonly Invocation5XXErrors: 0 | 1;
  /** Counts failures of the model. Alarms on this metric can roll back an update. */
  readonly InvocationModelErrors: 0 | 1;
  readonly MidStreamErrors: 0 | 1;
}

/** HTTP status of SageMaker's ModelError. Its OriginalStatusCode contains the container's status. */
const modelErrorStatus = 424;

/**
 * Returns the response status and the metrics of an outcome. The error counts use the status of the container, or of
 * the platform if the container sent none. With the sent status, 424, every failure would count as a client error.
 */
export function outcomeReport(outcome: InvocationOutcome): OutcomeReport {
  switch (outcome.kind) {
    case "succeeded":
      return { ...noErrors, sentStatus: 200 };
    case "model-error":
      return { ...noErrors, ...errorsBy(outcome.status), sentStatus: modelErrorStatus, InvocationModelErrors: 1 };
    case "timed-out":
      return { ...noErrors, ...errorsBy(504), sentStatus: modelErrorStatus, InvocationModelErrors: 1 };
    case "response-too-long":
      return { ...noErrors, ...errorsBy(413), sentStatus: 413, InvocationModelErrors: 1 };
    case "stream-failed":
      return { ...noErrors, sentStatus: 200, InvocationModelErrors: 1, MidStreamErrors: 1 };
    case "refused":
      return { ...noErrors, ...errorsBy(outcome.status), sentStatus: outcome.status };
    case "cancelled":
      return noErrors;
    case "not-sent":
      return { ...noErrors, Invocations: 0 };
    default:
      return unreachable(outcome);
  }
}

/** Returns the outcome of an invocation that throws an error. `hasResponse` is true if a container has responded. */
export function outcomeOfError(
  error: unknown,
  { isCancelled, hasResponse }: { readonly isCancelled: boolean; readonly hasResponse: boolean },
): InvocationOutcome {
  if (isCancelled) return { kind: "cancelled" };
  if (!(error instanceof AwsError)) return { kind: "refused", status: 500 };
  if (error.code === "ModelStreamError") return { kind: "stream-failed" };
  if (error.code === "413" && hasResponse) return { kind: "response-too-long" };
  const { OriginalStatusCode: status } = error.members;
  if (typeof status !== "number") return { kind: "refused", status: error.statusFallback };
  return status === 0 ? { kind: "timed-out" } : { kind: "model-error", status };
}

const noErrors: OutcomeReport = {
  sentStatus: null,
  Invocations: 1,
  Invocation4XXErrors: 0,
  Invocation5XXErrors: 0,
  InvocationModelErrors: 0,
  MidStreamErrors: 0,
};

/** Returns the error counts for an HTTP status. */
export function errorsBy(status: number): Pick<OutcomeReport, "Invocation4XXErrors" | "Invocation5XXErrors"> {
  return {
    Invocation4XXErrors: status >= 400 && status < 500 ? 1 : 0,
    Invocation5XXErrors: status >= 500 ? 1 : 0,
  };
}
