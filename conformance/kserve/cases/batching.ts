import type { Case } from "../case.ts";
import { infer, input } from "../requests.ts";

const delay = (ms: number, rows = 1) => ({ inputs: [input("DELAY_MS", "INT32", [rows, 1], Array(rows).fill(ms))] });

export const batching: readonly Case[] = [
  {
    name: "batching: four requests at once become one batch of the preferred size",
    fixture: "main",
    steps: [infer("batches", delay(0), "json", { copies: 4 })],
  },
  {
    name: "batching: two requests of two rows become one batch",
    fixture: "main",
    steps: [infer("batches", delay(0, 2), "json", { copies: 2 })],
  },
  { name: "batching: a full batch does not wait", fixture: "main", steps: [infer("batches", delay(0, 4))] },
  {
    name: "batching: without a delay one request is a batch of one",
    fixture: "main",
    steps: [infer("batches_plain", delay(0))],
  },
  {
    name: "batching: requests queued during a batch become one batch",
    fixture: "main",
    steps: [
      infer("batches_plain", delay(700), "json", { afterMs: 0 }),
      infer("batches_plain", delay(500), "status", { afterMs: 150 }),
      infer("batches_plain", delay(0), "status", { afterMs: 150, copies: 4 }),
    ],
  },
  {
    name: "batching: the maximum queue size",
    fixture: "main",
    steps: [infer("queue_bound", delay(400), "error", { copies: 12 })],
  },
  {
    name: "batching: the timeout of the queue",
    fixture: "main",
    steps: [infer("queue_timeout", delay(900), "error", { copies: 6 })],
  },
  {
    name: "batching: a request's own timeout below the default",
    fixture: "main",
    steps: [
      infer("queue_timeout", delay(900), "status", { afterMs: 0 }),
      infer("queue_timeout", delay(1), "status", { afterMs: 50 }),
      infer("queue_timeout", { ...delay(1), parameters: { timeout: 1000 } }, "error", { afterMs: 20, copies: 3 }),
    ],
  },
  {
    name: "batching: a request above the batch size",
    fixture: "main",
    steps: [infer("batches", delay(0, 5), "error")],
  },
];
