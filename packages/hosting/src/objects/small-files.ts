import { rm } from "node:fs/promises";
import { Worker } from "node:worker_threads";
import { awaitAll, createDurably } from "./durable-file.ts";
import type { SmallFileRequest, SmallFileReply } from "./small-files-worker.ts";

/** Maximum length of files that a thread writes. Each file is copied once for the transfer to the thread. */
const fileBytesMax = 64 * 1024;
/** Maximum number of files that are written at the same time without a thread, because a single file is durable sooner that way. */
const alonesMax = 2;
const threadsMax = 2;
/** Maximum number of files in a group. A file is acknowledged only when all files of its group are durable. */
const groupMax = 16;

interface Waiting {
  readonly path: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/**
 * Writes small files durably, as `createDurably` does. If many files arrive at once, threads write them in groups, except two at a time. Each
 * file needs nine file system calls. Without threads, these calls would queue in libuv's pool behind other syncs, and so would reads: for
 * example, downloads would wait while outputs of a transform job are synced.
 */
export class SmallFiles implements AsyncDisposable {
  readonly #threads: GroupThread[] = [];
  readonly #waiting: Waiting[] = [];
  #aloneCount = 0;
  #isClosed = false;

  /**
   * Creates a file durably. `others` run concurrently with its syncs. On failure, the file is removed. The queue for a thread is bounded only
   * by the number of callers.
   */
  async create(path: string, chunks: readonly Buffer[], others: readonly (() => Promise<void>)[] = []): Promise<void> {
    const byteLength = chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0);
    if (byteLength > fileBytesMax || this.#isClosed) return await createDurably(path, chunks, others);
    if (this.#aloneCount >= alonesMax) return await this.#inGroup(path, { pieces: chunks, byteLength }, others);
    this.#aloneCount += 1;
    try {
      await createDurably(path, chunks, others);
    } finally {
      this.#aloneCount -= 1;
    }
  }

  async #inGroup(
    path: string,
    { pieces, byteLength }: { readonly pieces: readonly Buffer[]; readonly byteLength: number },
    others: readonly (() => Promise<void>)[],
  ): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    // Not from Node's pool, so that it can be transferred to the thread without another copy.
    const bytes = new Uint8Array(byteLength);
    let at = 0;
    for (const chunk of pieces) {
      bytes.set(chunk, at);
      at += chunk.byteLength;
    }
    this.#waiting.push({ path, bytes, resolve, reject });
    this.#handOut();
    try {
      await awaitAll([promise, ...others.map((other) => other())]);
    } catch (error) {
      await rm(`${path}.tmp`, { force: true });
      await rm(path, { force: true });
      throw error;
    }
  }

  readonly #handOut = (): void => {
    while (this.#waiting.length > 0) {
      const idle = this.#threads.find((thread) => !thread.isBusy) ?? this.#startThread();
      if (idle === null) return;
      idle.write(this.#waiting.splice(0, groupMax));
    }
  };

  #startThread(): GroupThread | null {
    if (this.#threads.length >= threadsMax) return null;
    const thread = new GroupThread(this.#handOut);
    this.#threads.push(thread);
    return thread;
  }

  /** Waits until the files in progress are written. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#threads.map((thread) => thread[Symbol.asyncDispose]()));
  }
}

/** A thread that writes one group at a time. If it ends, a new thread replaces it. An idle thread does not keep the process alive. */
class GroupThread implements AsyncDisposable {
  readonly #wasFreed: () => void;
  readonly #group = new Map<number, Waiting>();
  #worker: Worker | null = null;
  #freed = Promise.withResolvers<void>();
  #lastId = 0;

  constructor(wasFreed: () => void) {
    this.#wasFreed = wasFreed;
  }

  get isBusy(): boolean {
    return this.#group.size > 0;
  }

  write(files: readonly Waiting[]): void {
    const worker = (this.#worker ??= this.#startWorker());
    const orders = files.map((file): SmallFileRequest => {
      const id = (this.#lastId += 1);
      this.#group.set(id, file);
      return { id, path: file.path, bytes: file.bytes };
    });
    worker.ref();
    worker.postMessage(
      orders,
      files.map(({ bytes }) => bytes.buffer),
    );
  }

  #startWorker(): Worker {
    const name = import.meta.url.endsWith(".ts") ? "./small-files-worker.ts" : "./small-files-worker.js";
    const worker = new Worker(new URL(name, import.meta.url), { execArgv: [] });
    worker.on("message", (replies: readonly SmallFileReply[]) => this.#settle(replies));
    worker.on("error", (error) => this.#lost(worker, error));
    worker.on("exit", () => this.#lost(worker, new Error("the thread that writes small files has ended")));
    return worker;
  }

  #settle(replies: readonly SmallFileReply[]): void {
    for (const { id, failure } of replies) {
      const file = this.#group.get(id);
      this.#group.delete(id);
      if (failure === null) file?.resolve();
      else file?.reject(Object.assign(new Error(failure.message), { code: failure.code ?? undefined }));
    }
    if (this.#group.size === 0) this.#isFree();
  }

  /** Rejects the writes of a thread that has ended. The state of the files on disk is unknown, so their callers remove them. */
  #lost(worker: Worker, error: Error): void {
    if (this.#worker !== worker) return;
    this.#worker = null;
    for (const file of this.#group.values()) file.reject(error);
    this.#group.clear();
    this.#isFree();
  }

  #isFree(): void {
    this.#worker?.unref();
    this.#freed.resolve();
    this.#freed = Promise.withResolvers();
    this.#wasFreed();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    while (this.isBusy) await this.#freed.promise;
    const worker = this.#worker;
    this.#worker = null;
    await worker?.terminate();
  }
}
