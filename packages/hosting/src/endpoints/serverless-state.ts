import { assert, unreachable } from "@galatea/base";

/** The state of a serverless instance. */
export type ServerlessState =
  /** The instance does not run and uses no resources of a node. */
  | { readonly at: "cold" }
  | { readonly at: "starting"; readonly failureCount: number }
  | { readonly at: "running" }
  /** The instance is being stopped. It gets no requests, and its memory is not free yet. */
  | { readonly at: "stopping" }
  /** The start has failed. Requests fail with its error until `untilMs`, when a new start is allowed. */
  | { readonly at: "failed"; readonly error: unknown; readonly failureCount: number; readonly untilMs: number };

export type ServerlessEvent =
  | { readonly kind: "start" }
  | { readonly kind: "started" }
  | { readonly kind: "start-failed"; readonly error: unknown; readonly nowMs: number }
  | { readonly kind: "stop" }
  | { readonly kind: "stopped" };

const retryMsMin = 1000;
const retryMsMax = 30_000;

export const coldState: ServerlessState = { at: "cold" };

/** Returns the state after an event. Throws if the event is not allowed in the state, which is a bug of the caller. */
export function nextServerlessState(state: ServerlessState, event: ServerlessEvent): ServerlessState {
  switch (event.kind) {
    case "start": {
      assert(state.at === "cold" || state.at === "failed", `start while ${state.at}`);
      return { at: "starting", failureCount: state.at === "failed" ? state.failureCount : 0 };
    }
    case "started":
      assert(state.at === "starting", `started while ${state.at}`);
      return { at: "running" };
    case "start-failed": {
      assert(state.at === "starting", `a start failed while ${state.at}`);
      const failureCount = state.failureCount + 1;
      const restMs = Math.min(retryMsMax, retryMsMin * 2 ** Math.min(failureCount - 1, 10));
      return { at: "failed", error: event.error, failureCount, untilMs: event.nowMs + restMs };
    }
    case "stop":
      assert(state.at === "running", `stop while ${state.at}`);
      return { at: "stopping" };
    case "stopped":
      assert(state.at === "stopping", `stopped while ${state.at}`);
      return coldState;
    default:
      return unreachable(event);
  }
}

/** The next step of a request to a serverless variant. `hasWaited` is true for a request that waited for a start that has failed. */
export type ServerlessRequestStep =
  | { readonly do: "go" }
  | { readonly do: "start" }
  | { readonly do: "wait" }
  | { readonly do: "fail"; readonly error: unknown; readonly againInMs: number };

export function nextRequestStep(
  state: ServerlessState,
  { nowMs, hasWaited }: { readonly nowMs: number; readonly hasWaited: boolean },
): ServerlessRequestStep {
  switch (state.at) {
    case "running":
      return { do: "go" };
    case "cold":
      return { do: "start" };
    case "starting":
    case "stopping":
      return { do: "wait" };
    case "failed": {
      const againInMs = Math.max(0, state.untilMs - nowMs);
      if (againInMs === 0 && !hasWaited) return { do: "start" };
      return { do: "fail", error: state.error, againInMs };
    }
    default:
      return unreachable(state);
  }
}

/**
 * Returns the milliseconds until an idle instance must be stopped: 0 if it must be stopped now, null if it is not idle.
 */
export function msUntilIdleStop(
  {
    isKept,
    callCount,
    quietSinceMs,
  }: { readonly isKept: boolean; readonly callCount: number; readonly quietSinceMs: number },
  { nowMs, idleMs }: { readonly nowMs: number; readonly idleMs: number },
): number | null {
  if (isKept || callCount > 0) return null;
  return Math.max(0, quietSinceMs + idleMs - nowMs);
}
