import { unreachable } from "@galatea/base";

/** The state of an instance's worker. `failureCount` is the number of crashes and failed starts since a worker last ran well (`sound`). */
export type WorkerState<Worker> =
  /** The worker was not needed yet, or a start on demand failed. While `isResting`, no start is attempted. */
  | { readonly at: "dormant"; readonly isResting: boolean }
  | { readonly at: "up"; readonly worker: Worker; readonly failureCount: number }
  /** `isFirst` is true if the instance was dormant before. */
  | { readonly at: "starting"; readonly isFirst: boolean; readonly failureCount: number }
  /**
   * Waits for the next start; the pause grows with each failure. `startFailed` is true if the last start failed, false if a running worker
   * has ended.
   */
  | { readonly at: "down"; readonly reason: string; readonly startFailed: boolean; readonly failureCount: number }
  /** No other worker is started. */
  | { readonly at: "closed" };

export type WorkerEvent<Worker> =
  | { readonly is: "ended"; readonly worker: Worker; readonly reason: string }
  /** The worker has executed something, or has run long enough that its end does not count as a failed start. */
  | { readonly is: "sound" }
  | { readonly is: "started"; readonly worker: Worker }
  | { readonly is: "start failed"; readonly reason: string }
  | { readonly is: "wait over" }
  /** All other workers of the model execute. */
  | { readonly is: "needed" }
  | { readonly is: "closed" };

/**
 * Returns the state after an event; the same object if nothing changes. After the first failure, the worker is restarted without a pause.
 */
export function nextWorkerState<Worker>(state: WorkerState<Worker>, event: WorkerEvent<Worker>): WorkerState<Worker> {
  if (state.at === "closed") return state;
  const failureCount = state.at === "dormant" ? 0 : state.failureCount + 1;
  switch (event.is) {
    case "ended":
      if (state.at !== "up" || state.worker !== event.worker) return state;
      return failureCount === 1
        ? { at: "starting", isFirst: false, failureCount }
        : { at: "down", reason: event.reason, startFailed: false, failureCount };
    case "sound":
      return state.at === "up" && state.failureCount > 0 ? { ...state, failureCount: 0 } : state;
    case "started":
      return state.at === "starting" ? { at: "up", worker: event.worker, failureCount: state.failureCount } : state;
    case "start failed":
      if (state.at !== "starting") return state;
      if (state.isFirst) return { at: "dormant", isResting: true };
      return { at: "down", reason: event.reason, startFailed: true, failureCount };
    case "wait over":
      if (state.at === "dormant") return state.isResting ? { at: "dormant", isResting: false } : state;
      return state.at === "down" ? { at: "starting", isFirst: false, failureCount: state.failureCount } : state;
    case "needed":
      return state.at === "dormant" && !state.isResting ? { at: "starting", isFirst: true, failureCount: 0 } : state;
    case "closed":
      return { at: "closed" };
    default:
      return unreachable(event);
  }
}
