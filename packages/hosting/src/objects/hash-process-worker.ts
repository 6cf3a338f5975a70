/** The process that hashes, in at most as many threads as its argument says: reads orders from its standard input, one JSON text a line, and prints a reply for each body that it was told the end of. */
import { existsSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { Worker } from "node:worker_threads";
import { printHashReply } from "./hash-lines.ts";
import { niceness } from "./hash-niceness.ts";
import type { HashOrder, HashReply } from "./hash-worker.ts";

interface HashThread {
  readonly worker: Worker;
  /** Of the bodies that it follows. */
  readonly ids: Set<number>;
}

/** Threads are started as bodies come at once. One hashes 500 MB a second and more. */
const threadsMax = Number(process.argv[2]);
const autogroup = "/proc/self/autogroup";

const threads: HashThread[] = [];
const threadOf = new Map<number, HashThread>();

/**
 * Where Linux shares processors out by sessions, a thread's niceness (`hash-worker.ts`) counts within its session only, and its session's
 * against all others. Not before there is a thread: on a full machine a start that gives way takes seconds.
 */
function giveWay(): void {
  try {
    if (existsSync(autogroup)) writeFileSync(autogroup, String(niceness));
  } catch (error) {
    // Of users without rights Linux takes one such wish in a tenth of a second; and a container's /proc may be read-only.
    process.stderr.write(`hashing is nice within its own session only: ${String(error)}\n`);
  }
}

function serve(order: HashOrder): void {
  const thread = order.at === "open" ? chosen() : threadOf.get(order.id);
  // One whose thread has failed meanwhile, which was told.
  if (thread === undefined) return;
  if (order.at === "open") {
    threadOf.set(order.id, thread);
    thread.ids.add(order.id);
  }
  thread.worker.postMessage(order, []);
  if (order.at === "cancel") forget(order.id);
}

/** An idle one, else a new one, else the one with the fewest bodies. */
function chosen(): HashThread {
  const [least] = threads.toSorted((a, b) => a.ids.size - b.ids.size);
  if (least !== undefined && (least.ids.size === 0 || threads.length >= threadsMax)) return least;
  const url = new URL(import.meta.url.endsWith(".ts") ? "./hash-worker.ts" : "./hash-worker.js", import.meta.url);
  const thread: HashThread = { worker: new Worker(url, { execArgv: [] }), ids: new Set() };
  thread.worker.on("message", reply);
  thread.worker.on("error", (error) => {
    threads.splice(threads.indexOf(thread), 1);
    for (const id of thread.ids) reply({ id, failure: (error as Error).message });
  });
  threads.push(thread);
  return thread;
}

function reply(said: HashReply): void {
  forget(said.id);
  process.stdout.write(printHashReply(said));
}

function forget(id: number): void {
  threadOf.get(id)?.ids.delete(id);
  threadOf.delete(id);
}

chosen().worker.once("online", giveWay);
for await (const line of createInterface({ input: process.stdin })) serve(JSON.parse(line) as HashOrder);
// Whoever gave the orders is gone, and what is under way is nobody's.
process.exit();
