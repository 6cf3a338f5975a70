import { availableParallelism } from "node:os";
import { Worker } from "node:worker_threads";
import type { DigestName } from "./checksum.ts";
import type { HashOrder, HashReply } from "./hash-worker.ts";

/** Hashes of one file that is being written, computed off the serving thread. Cancelled when disposed before its end. */
export interface FileHash extends Disposable {
  /** The first `byteLength` bytes are written. */
  written(byteLength: number): void;
  end(byteLength: number): Promise<Partial<Record<DigestName, string>>>;
}

interface Waiter {
  resolve(digests: Partial<Record<DigestName, string>>): void;
  reject(error: Error): void;
}

/** Threads that hash: one for each processor up to this. */
const threadsMax = 4;

/** Worker threads, started as large bodies come at once. They keep nothing alive while no body is under way. */
export class HashPool implements AsyncDisposable {
  readonly #threads: HashThread[] = [];
  readonly #threadCountMax = Math.min(threadsMax, availableParallelism());

  /** Of the file's bytes from `offset` on. */
  follow(path: string, names: readonly DigestName[], offset: number): FileHash {
    return this.#thread().follow(path, names, offset);
  }

  /** An idle one, else a new one, else the one with the fewest bodies. */
  #thread(): HashThread {
    const [least] = this.#threads.toSorted((a, b) => a.bodyCount - b.bodyCount);
    if (least !== undefined && (least.bodyCount === 0 || this.#threads.length >= this.#threadCountMax)) return least;
    const thread = new HashThread();
    this.#threads.push(thread);
    return thread;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread[Symbol.asyncDispose]()));
  }
}

/** One worker thread, made anew where it ended. */
class HashThread implements AsyncDisposable {
  #worker: Worker | null = null;
  #nextId = 1;
  #bodyCount = 0;
  readonly #waiting = new Map<number, Waiter>();
  readonly #failed = new Map<number, string>();

  get bodyCount(): number {
    return this.#bodyCount;
  }

  follow(path: string, names: readonly DigestName[], offset: number): FileHash {
    const worker = this.#started();
    const id = this.#nextId;
    this.#nextId += 1;
    worker.postMessage({ at: "open", id, path, offset, names } satisfies HashOrder, []);
    let live = true;
    let counted = true;
    this.#bodyCount += 1;
    return {
      written: (byteLength) => worker.postMessage({ at: "written", id, byteLength } satisfies HashOrder, []),
      end: (byteLength) =>
        new Promise((resolve, reject) => {
          live = false;
          if (this.#worker !== worker) return reject(new Error("the hashing thread has ended"));
          const early = this.#failed.get(id);
          if (early !== undefined) {
            this.#failed.delete(id);
            return reject(new Error(`hashing failed: ${early}`));
          }
          this.#waiting.set(id, { resolve, reject });
          worker.ref();
          worker.postMessage({ at: "end", id, byteLength } satisfies HashOrder, []);
        }),
      [Symbol.dispose]: () => {
        this.#failed.delete(id);
        if (live) worker.postMessage({ at: "cancel", id } satisfies HashOrder, []);
        if (counted) this.#bodyCount -= 1;
        counted = false;
      },
    };
  }

  #started(): Worker {
    if (this.#worker !== null) return this.#worker;
    const worker = new Worker(
      new URL(import.meta.url.endsWith(".ts") ? "./hash-worker.ts" : "./hash-worker.js", import.meta.url),
      { execArgv: [] },
    );
    worker.unref();
    worker.on("message", (reply: HashReply) => this.#settle(reply));
    worker.on("error", (error) => {
      this.#worker = null;
      for (const waiter of this.#waiting.values()) waiter.reject(error);
      this.#waiting.clear();
    });
    this.#worker = worker;
    return worker;
  }

  #settle(reply: HashReply): void {
    const waiter = this.#waiting.get(reply.id);
    if (waiter === undefined) {
      if ("failure" in reply) this.#failed.set(reply.id, reply.failure);
      return;
    }
    this.#waiting.delete(reply.id);
    if (this.#waiting.size === 0) this.#worker?.unref();
    if ("failure" in reply) waiter.reject(new Error(`hashing failed: ${reply.failure}`));
    else waiter.resolve(reply.digests);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const waiter of this.#waiting.values()) waiter.reject(new Error("the object store is closing"));
    this.#waiting.clear();
    await this.#worker?.terminate();
    this.#worker = null;
  }
}
