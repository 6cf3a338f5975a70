import { closeSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { openOrtLibrary, checkStatus } from "./onnxruntime-api.ts";
import type { RunThreadData, RunThreadReady } from "./run-thread-worker.ts";

/**
 * A thread that only runs models. It receives its runs directly from a socket (run-wire.ts), so that no other JavaScript thread delays them.
 * Each session prefers one thread, because that thread's caches contain the session's data. The thread ends when the peer closes its socket.
 */
export interface RunThread {
  /** Makes current and later runs end at their next operator (true), or lets them run to their end (false). */
  setTerminating(isTerminating: boolean): void;
}

/** Starts a run thread and waits until it is ready. */
export async function openRunThread(data: RunThreadData): Promise<RunThread> {
  const { api } = openOrtLibrary(data.libraryPath);
  const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
  const worker = new Worker(new URL(`./run-thread-worker.${extension}`, import.meta.url), {
    workerData: data,
    // The thread does not own tensors, so its garbage is small.
    resourceLimits: { maxYoungGenerationSizeMb: 1 },
  });
  worker.on("error", () => {}); // The `exit` event follows, and the peer sees that its socket is closed.
  worker.once("exit", () => closeSync(data.fd));
  const ready = await new Promise<RunThreadReady>((resolve, reject) => {
    worker.once("message", resolve);
    worker.once("error", reject);
    worker.once("exit", () => reject(new Error("a thread that runs models has ended")));
  });
  worker.unref();
  return {
    setTerminating(does) {
      const set = does ? api.runOptionsSetTerminate : api.runOptionsUnsetTerminate;
      for (const options of ready.options) checkStatus(api, set(options));
    },
  };
}
