/**
 * The entry point of the hashing process. Its argument is the maximum number of threads. It reads requests from
 * standard input, one JSON text per line, and prints a reply for each completed body.
 */
import { existsSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { Worker } from "node:worker_threads";
import { formatHashReply } from "./hash-lines.ts";
import { hashThreadNiceness } from "./hash-niceness.ts";
import type { HashRequest, HashReply } from "./hash-worker.ts";

interface HashThread {
  readonly worker: Worker;
  /** Ids of the bodies that this thread hashes. */
  readonly ids: Set<number>;
}

/**
 * Maximum number of threads. More than one thread is started only for concurrent bodies; one thread hashes at least 500
 * MB per second.
 */
const threadsMax = Number(process.argv[2]);
const autogroup = "/proc/self/autogroup";

const threads: HashThread[] = [];
const threadOf = new Map<number, HashThread>();

/**
 * Lowers the priority of this process's session. If Linux schedules by session (autogroup), the niceness of a thread
 * (`hash-worker.ts`) matters only within its session. Call it after the first thread has started: on a busy machine, a
 * thread start with low priority takes seconds.
 */
function lowerPriority(): void {
  try {
    if (existsSync(autogroup)) writeFileSync(autogroup, String(hashThreadNiceness));
  } catch (error) {
    // Linux accepts one such write per 100 ms from an unprivileged user, and a container's /proc may be read-only.
    process.stderr.write(`hashing has a low priority only within its own session: ${String(error)}\n`);
  }
}

function serve(request: HashRequest): void {
  const thread = request.at === "open" ? chooseThread() : threadOf.get(request.id);
  // The thread of this body has failed, and the failure was already reported.
  if (thread === undefined) return;
  if (request.at === "open") {
    threadOf.set(request.id, thread);
    thread.ids.add(request.id);
  }
  thread.worker.postMessage(request, []);
  if (request.at === "cancel") forget(request.id);
}

/** Returns an idle thread; otherwise a new thread; at the maximum number, the thread with the fewest bodies. */
function chooseThread(): HashThread {
  const [least] = threads.toSorted((a, b) => a.ids.size - b.ids.size);
  if (least !== undefined && (least.ids.size === 0 || threads.length >= threadsMax)) return least;
  const url = new URL(import.meta.url.endsWith(".ts") ? "./hash-worker.ts" : "./hash-worker.js", import.meta.url);
  const thread: HashThread = { worker: new Worker(url, { execArgv: [] }), ids: new Set() };
  thread.worker.on("message", send);
  thread.worker.on("error", (error) => {
    threads.splice(threads.indexOf(thread), 1);
    for (const id of thread.ids) send({ id, failure: (error as Error).message });
  });
  threads.push(thread);
  return thread;
}

function send(reply: HashReply): void {
  forget(reply.id);
  process.stdout.write(formatHashReply(reply));
}

function forget(id: number): void {
  threadOf.get(id)?.ids.delete(id);
  threadOf.delete(id);
}

chooseThread().worker.once("online", lowerPriority);
for await (const line of createInterface({ input: process.stdin })) serve(JSON.parse(line) as HashRequest);
// The parent process has ended, so the work in progress is useless.
process.exit();
