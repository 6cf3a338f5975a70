import { closeSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { openOrtLibrary, checkStatus } from "./onnxruntime-api.ts";
import type { RunLaneData, RunLaneReady } from "./run-lane-worker.ts";

/**
 * A thread that runs models and nothing else: it waits at its socket for the next run (run-wire.ts), so that nobody but the kernel lies
 * between whoever asks for a run and the thread that does it. A session comes back to the same lane, whose caches are then the right
 * ones. It ends when the other side of its socket is closed.
 */
export interface RunLane {
  /** From now on a run ends at its next operator, or (false) not. */
  terminates(does: boolean): void;
}

/** Starts a lane and waits until it is at its socket. */
export async function openRunLane(data: RunLaneData): Promise<RunLane> {
  const { api } = openOrtLibrary(data.libraryPath);
  const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
  const worker = new Worker(new URL(`./run-lane-worker.${extension}`, import.meta.url), {
    workerData: data,
    // A thread holds no tensors: what it makes is garbage within one run.
    resourceLimits: { maxYoungGenerationSizeMb: 1 },
  });
  worker.on("error", () => {}); // Its end follows, and whoever waits at the socket sees that.
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
