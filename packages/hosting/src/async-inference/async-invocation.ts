import { assert, unreachable } from "@galatea/base";

/** The location of an object in S3. */
export interface S3ObjectLocation {
  readonly bucket: string;
  readonly key: string;
}

export type AsyncInput =
  | { readonly at: "object"; readonly url: string; readonly location: S3ObjectLocation }
  /** An input in the body of the request. It is stored in a separate record. */
  | { readonly at: "record"; readonly byteLength: number };

/** The endpoint that accepted a request. The creation time distinguishes it from a later endpoint with the same name. */
export interface QueuedEndpoint {
  readonly name: string;
  readonly createdMs: number;
  readonly accountId: string;
  readonly region: string;
}

/** The SNS topics for the results of a request; null if the endpoint configuration has none. */
export interface ResultTopics {
  readonly success: string | null;
  readonly error: string | null;
  /** True for each topic whose messages include the response body (IncludeInferenceResponseIn). */
  readonly includesIn: { readonly success: boolean; readonly error: boolean };
}

/**
 * An accepted asynchronous request. It contains all data that is needed to complete the request after its endpoint was
 * updated or deleted.
 */
export interface AsyncInvocation {
  readonly inferenceId: string;
  readonly endpoint: QueuedEndpoint;
  /** The endpoint's variant at the time of acceptance. */
  readonly variantName: string;
  readonly receivedMs: number;
  /** Epoch time at which the request fails if it has not started. */
  readonly expiresMs: number;
  readonly timeLimitMs: number;
  /** Headers for the container, by lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly input: AsyncInput;
  readonly output: S3ObjectLocation | null;
  readonly failure: S3ObjectLocation | null;
  readonly topics: ResultTopics;
  /** Number of containers that terminated while they processed this request. */
  readonly lostCount: number;
}

/** A failed request: `reason` is sent in the SNS notification, and `text` is written to the failure location in S3. */
export interface AsyncFailure {
  readonly reason: string;
  readonly text: string;
  /** Text for the endpoint's log, if it differs from `text`. */
  readonly logged?: string;
}

/**
 * The state of an accepted request. Only `waiting` is recorded: a request in any other state waits again after a
 * restart.
 */
export type AsyncState =
  | { readonly at: "waiting"; readonly lostCount: number }
  | { readonly at: "running"; readonly lostCount: number; readonly sinceMs: number }
  | { readonly at: "completed" }
  | { readonly at: "failed"; readonly failure: AsyncFailure }
  | { readonly at: "expired" };

export type AsyncEvent =
  | { readonly kind: "taken"; readonly nowMs: number; readonly expiresMs: number }
  /** The response was stored. */
  | { readonly kind: "answered" }
  | { readonly kind: "refused"; readonly failure: AsyncFailure }
  /** The container terminated while it processed the request. */
  | { readonly kind: "lost"; readonly failure: AsyncFailure }
  /** A temporary fault: the platform shuts down, the disk is full, or memory is short. The request runs again later. */
  | { readonly kind: "interrupted" }
  /** The endpoint was deleted, so no instance can process the request. */
  | { readonly kind: "orphaned" };

/** Number of containers that may terminate during one request before the request fails. */
export const containerLossesMax = 3;

/** Returns the next state of a request. Throws if the event is not allowed in the state, which is a bug of the caller. */
export function nextAsyncState(state: AsyncState, event: AsyncEvent): AsyncState {
  switch (event.kind) {
    case "taken":
      assert(state.at === "waiting", `taken while ${state.at}`);
      if (event.nowMs >= event.expiresMs) return { at: "expired" };
      return { at: "running", lostCount: state.lostCount, sinceMs: event.nowMs };
    case "answered":
      assert(state.at === "running", `answered while ${state.at}`);
      return { at: "completed" };
    case "refused":
      assert(state.at === "running", `refused while ${state.at}`);
      return { at: "failed", failure: event.failure };
    case "lost": {
      assert(state.at === "running", `lost while ${state.at}`);
      const lostCount = state.lostCount + 1;
      return lostCount >= containerLossesMax ? { at: "failed", failure: event.failure } : { at: "waiting", lostCount };
    }
    case "interrupted":
      assert(state.at === "running", `interrupted while ${state.at}`);
      return { at: "waiting", lostCount: state.lostCount };
    case "orphaned":
      assert(state.at === "waiting", `orphaned while ${state.at}`);
      return { at: "failed", failure: orphaned };
    default:
      return unreachable(event);
  }
}

const orphaned: AsyncFailure = {
  reason: "ClientError: The endpoint was deleted before the request was processed.",
  text: "The endpoint was deleted before the request was processed.",
};

export const expiredFailure: AsyncFailure = {
  reason: "ClientError: The request expired: it was in the queue for longer than its RequestTTLSeconds.",
  text: "The request expired: it was in the queue for longer than its RequestTTLSeconds.",
};
