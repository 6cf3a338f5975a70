import { parentPort, workerData } from "node:worker_threads";
import { QueryLimitExceeded } from "./aggregation.ts";
import type { QueryEvent } from "./query-record.ts";
import { QueryRun, type QueryOptions, type QueryResult } from "./query-run.ts";

export interface QueryThreadData extends QueryOptions {
  readonly text: string;
}

/** A batch of events for the thread; null after the last batch. */
export type QueryThreadInput = readonly QueryEvent[] | null;

export type QueryThreadOutput =
  | { readonly kind: "taken" }
  | { readonly kind: "done"; readonly result: QueryResult }
  | { readonly kind: "too-large"; readonly message: string };

const { text, ...options } = workerData as QueryThreadData;
const run = new QueryRun(text, options);

parentPort?.on("message", (events: QueryThreadInput) => {
  try {
    if (events === null) return post({ kind: "done", result: run.end() });
    for (const event of events) run.add(event);
    post({ kind: "taken" });
  } catch (error) {
    if (!(error instanceof QueryLimitExceeded)) throw error;
    post({ kind: "too-large", message: error.message });
  }
});

function post(message: QueryThreadOutput): void {
  parentPort?.postMessage(message, []);
}
