import { unreachable } from "../../base/index.ts";

/** Where the worker of an instance is in its life. `failureCount`: ends and failed starts since a worker last proved to be sound. */
export type WorkerLife<Worker> =
  | { readonly at: "up"; readonly worker: Worker; readonly failureCount: number }
  | { readonly at: "starting"; readonly failureCount: number }
  /** The next start waits, the longer the more often one has failed. `startFailed`: the last start did; otherwise a worker that was up has ended. */
  | { readonly at: "down"; readonly reason: string; readonly startFailed: boolean; readonly failureCount: number }
  /** No other worker follows. */
  | { readonly at: "closed" };

export type WorkerEvent<Worker> =
  | { readonly is: "ended"; readonly worker: Worker; readonly reason: string }
  /** It has executed something, or has been up for so long that it did not die of its start. */
  | { readonly is: "sound" }
  | { readonly is: "started"; readonly worker: Worker }
  | { readonly is: "start failed"; readonly reason: string }
  | { readonly is: "wait over" }
  | { readonly is: "closed" };

/** What follows from an event; the same object where nothing does. The first failure is answered by a start at once. */
export function nextLife<Worker>(life: WorkerLife<Worker>, event: WorkerEvent<Worker>): WorkerLife<Worker> {
  if (life.at === "closed") return life;
  const failureCount = life.failureCount + 1;
  switch (event.is) {
    case "ended":
      if (life.at !== "up" || life.worker !== event.worker) return life;
      return failureCount === 1
        ? { at: "starting", failureCount }
        : { at: "down", reason: event.reason, startFailed: false, failureCount };
    case "sound":
      return life.at === "up" && life.failureCount > 0 ? { ...life, failureCount: 0 } : life;
    case "started":
      return life.at === "starting" ? { ...life, at: "up", worker: event.worker } : life;
    case "start failed":
      return life.at === "starting" ? { at: "down", reason: event.reason, startFailed: true, failureCount } : life;
    case "wait over":
      return life.at === "down" ? { at: "starting", failureCount: life.failureCount } : life;
    case "closed":
      return { at: "closed" };
    default:
      return unreachable(event);
  }
}
