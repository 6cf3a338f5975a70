/**
 * The hashing process, with at most as many threads as its argument says: reads orders from its standard input, one
 * JSON text per line, and prints a reply for each completed body.
 */
import { existsSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { Worker } from "node:worker_threads";
import { formatHashReply } from "./hash-lines.ts";
import { hashThreadNiceness } from "./hash-niceness.ts";
import type { HashRequest, HashReply } from "./hash-worker.ts";

interface HashThread {
  readonly worker: Worker;
  /** Ids of the bodies that it hashes. */
  readonly ids: Set<number>;
}

/** Maximum number of threads, started for concurrent bodies. One thread hashes at least 500 MB per second. */
const threadsMax = Number(process.argv[2]);
const autogroup = "/proc/self/autogroup";

const threads: HashThread[] = [];
const threadOf = new Map<number, HashThread>();

/**
 * Lowers the priority of the session. Where Linux divides processors by sessions, a thread's niceness
 * (`hash-worker.ts`) counts only within its session. Called after the first thread has started: on a busy machine a
 * start with low priority takes seconds.
 */
function giveWay(): void {
  try {
    if (existsSync(autogroup)) writeFileSync(autogroup, String(hashThreadNiceness));
  } catch (error) {
    // Linux accepts one such write per 100 ms from an unprivileged user, and a container's /proc may be read-only.
    process.stderr.write(`hashing has a low priority only within its own session: ${String(error)}\n`);
  }
}

function serve(order: HashRequest): void {
  const thread = order.at === "open" ? chosen() : threadOf.get(order.id);
  // The body's thread has failed meanwhile, which was reported.
  if (thread === undefined) return;
  if (order.at === "open") {
    threadOf.set(order.id, thread);
    thread.ids.add(order.id);
  }
  thread.worker.postMessage(order, []);
  if (order.at === "cancel") forget(order.id);
}

/** Returns an idle thread, else a new one, else the one with the fewest bodies. */
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
  process.stdout.write(formatHashReply(said));
}

function forget(id: number): void {
  threadOf.get(id)?.ids.delete(id);
  threadOf.delete(id);
}

chosen().worker.once("online", giveWay);
for await (const line of createInterface({ input: process.stdin })) serve(JSON.parse(line) as HashRequest);
// The parent process has ended: the work in progress is of no use.
process.exit();
