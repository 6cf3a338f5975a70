import { closeSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { openOrtLibrary, checkStatus } from "./onnxruntime-api.ts";
import type { RunLaneData, RunLaneReady } from "./run-lane-worker.ts";

/**
 * A thread that only runs models. It waits at its socket for the next run (run-wire.ts), so that only the kernel is between the caller of
 * a run and the thread. A session returns to the same lane, whose caches are warm. The lane ends when the peer of its socket is closed.
 */
export interface RunLane {
  /** Makes running and later runs end at their next operator (true), or not (false). */
  terminates(does: boolean): void;
}

/** Starts a lane and waits until it is ready. */
export async function openRunLane(data: RunLaneData): Promise<RunLane> {
  const { api } = openOrtLibrary(data.libraryPath);
  const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
  const worker = new Worker(new URL(`./run-lane-worker.${extension}`, import.meta.url), {
    workerData: data,
    // A thread keeps no tensors: its garbage is short-lived.
    resourceLimits: { maxYoungGenerationSizeMb: 1 },
  });
  worker.on("error", () => {}); // The thread ends next, and the peer of its socket sees that.
  worker.once("exit", () => closeSync(data.fd));
  const ready = await new Promise<RunLaneReady>((resolve, reject) => {
    worker.once("message", resolve);
    worker.once("error", reject);
    worker.once("exit", () => reject(new Error("a thread that runs models has ended")));
  });
  worker.unref();
  return {
    terminates(does) {
      const set = does ? api.runOptionsSetTerminate : api.runOptionsUnsetTerminate;
      for (const options of ready.options) checkStatus(api, set(options));
    },
  };
}
