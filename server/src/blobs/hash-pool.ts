import { Worker } from "node:worker_threads";
import type { DigestName } from "./checksum.ts";
import type { HashOrder, HashReply } from "./hash-worker.ts";

/** Hashes of one file that is being written, computed off the serving thread. Cancelled when disposed before its end. */
export interface FileHash extends Disposable {
  /** The file's first `byteLength` bytes are written. */
  written(byteLength: number): void;
  end(byteLength: number): Promise<Partial<Record<DigestName, string>>>;
}

interface Waiter {
  resolve(digests: Partial<Record<DigestName, string>>): void;
  reject(error: Error): void;
}

/** One worker thread, started at the first large body. It keeps nothing alive while no body is under way. */
export class HashPool implements AsyncDisposable {
  #worker: Worker | null = null;
  #nextId = 1;
  readonly #waiting = new Map<number, Waiter>();
  readonly #failed = new Map<number, string>();

  follow(path: string, names: readonly DigestName[]): FileHash {
    const worker = this.#started();
    const id = this.#nextId;
    this.#nextId += 1;
    worker.postMessage({ at: "open", id, path, names } satisfies HashOrder, []);
    let live = true;
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
