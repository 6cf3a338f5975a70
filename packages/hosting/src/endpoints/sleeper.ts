import { assert, unreachable } from "@galatea/base";

/** The states of an instance that is there only while it is wanted. Whoever waits for it looks again at each move. */
export type Sleeper =
  /** Nothing runs, and nothing of a node is taken. */
  | { readonly at: "asleep" }
  | { readonly at: "starting"; readonly failureCount: number }
  | { readonly at: "awake" }
  /** It gets no more requests; what it took of its node is not free before it has ended. */
  | { readonly at: "stopping" }
  /** Its start failed: requests are told of it, and none has it started again before a while is over. */
  | { readonly at: "failed"; readonly error: unknown; readonly failureCount: number; readonly untilMs: number };

export type SleeperEvent =
  | { readonly kind: "wake" }
  | { readonly kind: "started" }
  | { readonly kind: "start-failed"; readonly error: unknown; readonly nowMs: number }
  | { readonly kind: "sleep" }
  | { readonly kind: "stopped" };

const retryMsMin = 1000;
const retryMsMax = 30_000;

export const asleep: Sleeper = { at: "asleep" };

/** Every move there is; an event that a state does not know is a bug of the caller. */
export function moveSleeper(sleeper: Sleeper, event: SleeperEvent): Sleeper {
  switch (event.kind) {
    case "wake": {
      assert(sleeper.at === "asleep" || sleeper.at === "failed", `woken while ${sleeper.at}`);
      return { at: "starting", failureCount: sleeper.at === "failed" ? sleeper.failureCount : 0 };
    }
    case "started":
      assert(sleeper.at === "starting", `started while ${sleeper.at}`);
      return { at: "awake" };
    case "start-failed": {
      assert(sleeper.at === "starting", `a start failed while ${sleeper.at}`);
      const failureCount = sleeper.failureCount + 1;
      const restMs = Math.min(retryMsMax, retryMsMin * 2 ** Math.min(failureCount - 1, 10));
      return { at: "failed", error: event.error, failureCount, untilMs: event.nowMs + restMs };
    }
    case "sleep":
      assert(sleeper.at === "awake", `put to sleep while ${sleeper.at}`);
      return { at: "stopping" };
    case "stopped":
      assert(sleeper.at === "stopping", `stopped while ${sleeper.at}`);
      return asleep;
    default:
      return unreachable(event);
  }
}

/** What a request does that finds it so; `hasWaited` where it has waited for the start that failed. */
export type RequestStep =
  | { readonly do: "go" }
  | { readonly do: "wake" }
  | { readonly do: "wait" }
  | { readonly do: "fail"; readonly error: unknown; readonly againInMs: number };

export function requestStep(
  sleeper: Sleeper,
  { nowMs, hasWaited }: { readonly nowMs: number; readonly hasWaited: boolean },
): RequestStep {
  switch (sleeper.at) {
    case "awake":
      return { do: "go" };
    case "asleep":
      return { do: "wake" };
    case "starting":
    case "stopping":
      return { do: "wait" };
    case "failed": {
      const againInMs = Math.max(0, sleeper.untilMs - nowMs);
      if (againInMs === 0 && !hasWaited) return { do: "wake" };
      return { do: "fail", error: sleeper.error, againInMs };
    }
    default:
      return unreachable(sleeper);
  }
}

/** How long it may stay awake before somebody looks again; 0 where it is to sleep now. Null: until something changes. */
export function wakefulMs(
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
