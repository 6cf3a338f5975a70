import { AwsError, unreachable } from "@galatea/base";

/** The end of an invocation. */
export type InvocationOutcome =
  /** The caller got the model's response. */
  | { readonly kind: "succeeded" }
  /** `status`: the container's status that is no 2xx; 502 for an invalid response, 503 for none. */
  | { readonly kind: "model-error"; readonly status: number }
  /** The container did not respond in time. */
  | { readonly kind: "timed-out" }
  /** The model's response is longer than the limit. */
  | { readonly kind: "response-too-long" }
  /** The response ended early, after its beginning was sent to the caller. */
  | { readonly kind: "stream-failed" }
  /** The platform rejected the request, and no model is the cause. */
  | { readonly kind: "refused"; readonly status: number }
  /** The caller ended the request: its client disconnected or did not read the response in time, or the platform stops. */
  | { readonly kind: "cancelled" }
  /** Another instance takes the request. */
  | { readonly kind: "not-sent" };

/** The response status and the metrics of one outcome. */
export interface OutcomeReport {
  /** The HTTP status of the response; null where none is sent. */
  readonly sentStatus: number | null;
  readonly Invocations: 0 | 1;
  readonly Invocation4XXErrors: 0 | 1;
  readonly Invocation5XXErrors: 0 | 1;
  /** Invocations that a model failed; alarms that roll back an update watch it. */
  readonly InvocationModelErrors: 0 | 1;
  readonly MidStreamErrors: 0 | 1;
}

/** Status of ModelError. Its OriginalStatusCode has the container's status. */
const modelErrorStatus = 424;

/**
 * Returns the report of an outcome. The counts by class are of the status that the container, or the platform in its place,
 * responded with: 424 would make a client error of every failure.
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

/** Returns the outcome of an invocation that throws an error. `hasResponse`: true if a container has responded. */
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

/** Returns the counts by the class of a status. */
export function errorsBy(status: number): Pick<OutcomeReport, "Invocation4XXErrors" | "Invocation5XXErrors"> {
  return {
    Invocation4XXErrors: status >= 400 && status < 500 ? 1 : 0,
    Invocation5XXErrors: status >= 500 ? 1 : 0,
  };
}
