import { assert, unreachable } from "@galatea/base";

/** The location of an object in S3. */
export interface S3ObjectLocation {
  readonly bucket: string;
  readonly key: string;
}

export type AsyncInput =
  | { readonly at: "object"; readonly url: string; readonly location: S3ObjectLocation }
  /** An input that came with the request and is kept in a record of its own. */
  | { readonly at: "record"; readonly byteLength: number };

/** The endpoint that accepted the request; a later endpoint with the same name has another creation time. */
export interface QueuedEndpoint {
  readonly name: string;
  readonly createdMs: number;
  readonly accountId: string;
  readonly region: string;
}

export interface ResultTopics {
  readonly success: string | null;
  readonly error: string | null;
  /** Topics whose messages include the response itself. */
  readonly includesIn: { readonly success: boolean; readonly error: boolean };
}

/** An accepted request, with everything that is needed after its endpoint was replaced or deleted. */
export interface AsyncInvocation {
  readonly inferenceId: string;
  readonly endpoint: QueuedEndpoint;
  /** The endpoint's variant at the time of acceptance. */
  readonly variantName: string;
  readonly receivedMs: number;
  /** A request that has not started by then fails. */
  readonly expiresMs: number;
  readonly timeLimitMs: number;
  /** Headers for the container, by lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  readonly input: AsyncInput;
  readonly output: S3ObjectLocation | null;
  readonly failure: S3ObjectLocation | null;
  readonly topics: ResultTopics;
  /** Number of containers that ended while they ran the request. */
  readonly lostCount: number;
}

/** The reason of a failure, in the words of its notification, and the text of its failure object. */
export interface AsyncFailure {
  readonly reason: string;
  readonly text: string;
  /** Text for the log, where it is longer than `text`. */
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
  /** The response is stored. */
  | { readonly kind: "answered" }
  | { readonly kind: "refused"; readonly failure: AsyncFailure }
  /** The container ended while it ran the request. */
  | { readonly kind: "lost"; readonly failure: AsyncFailure }
  /** The request itself is valid: the platform ends, a disk is full for a while, or memory is short for the moment. */
  | { readonly kind: "interrupted" }
  /** The endpoint was deleted: no instance will run the request. */
  | { readonly kind: "orphaned" };

/** Maximum number of containers that one request may end before it fails. */
export const lostCountMax = 3;

/** Returns the state after an event. Throws on an event that the state does not allow, which is a bug of the caller. */
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
      return lostCount >= lostCountMax ? { at: "failed", failure: event.failure } : { at: "waiting", lostCount };
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
