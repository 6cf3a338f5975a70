import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { Neighbours, NeighboursDone } from "./neighbours-worker.ts";

/** Runs `work` while a thread uploads objects and records metrics. Returns its result and the figures of the thread. */
export async function withNeighbours<Result>(
  workerData: Neighbours,
  work: () => Promise<Result>,
): Promise<{ readonly result: Result; readonly done: NeighboursDone }> {
  const thread = new Worker(new URL("./neighbours-worker.ts", import.meta.url), { workerData });
  const said = once(thread, "message") as Promise<[NeighboursDone]>;
  const ended = once(thread, "exit");
  try {
    await once(thread, "online");
    const result = await Promise.race([
      work(),
      said.then(() => Promise.reject(new Error("the neighbours ended early"))),
    ]);
    thread.postMessage("stop", []);
    const [done] = await said;
    await ended;
    return { result, done };
  } finally {
    await thread.terminate();
  }
}
