import { rm } from "node:fs/promises";
import { Worker } from "node:worker_threads";
import { awaitAll, createDurably } from "./durable-file.ts";
import type { SmallFileRequest, SmallFileReply } from "./small-files-worker.ts";

/** Maximum length of files that a thread writes, for which they are copied once. */
const fileBytesMax = 64 * 1024;
/** Number of concurrent files that are written without a thread: a single file is on the disk sooner that way. */
const alonesMax = 2;
const threadsMax = 2;
/** Maximum number of files in a group: each is acknowledged when all of them are on the disk. */
const groupMax = 16;

interface Waiting {
  readonly path: string;
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

/**
 * Writes small files durably, as `createDurably` does. Where many come at once, all but two at a time are written by threads, in groups. A file
 * takes nine calls of the file system, and each of them would wait in libuv's pool behind the syncs of the others, as whatever is to be read
 * meanwhile would: an object's next requests, say, while outputs of a transform job are synced.
 */
export class SmallFiles implements AsyncDisposable {
  readonly #threads: GroupThread[] = [];
  readonly #waiting: Waiting[] = [];
  #aloneCount = 0;
  #isClosed = false;

  /**
   * Creates a file durably; `others` are synced with it. On failure nothing is left. The callers hold the bytes, so
   * their number bounds the files that wait for a thread.
   */
  async create(path: string, pieces: readonly Buffer[], others: readonly (() => Promise<void>)[] = []): Promise<void> {
    const byteLength = pieces.reduce((sum, piece) => sum + piece.byteLength, 0);
    if (byteLength > fileBytesMax || this.#isClosed) return await createDurably(path, pieces, others);
    if (this.#aloneCount >= alonesMax) return await this.#inGroup(path, { pieces, byteLength }, others);
    this.#aloneCount += 1;
    try {
      await createDurably(path, pieces, others);
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
    // Outside of Node's pool: it is transferred to the thread without another copy.
    const bytes = new Uint8Array(byteLength);
    let at = 0;
    for (const piece of pieces) {
      bytes.set(piece, at);
      at += piece.byteLength;
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

  /** Writes the files in progress first. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await Promise.all(this.#threads.map((thread) => thread[Symbol.asyncDispose]()));
  }
}

/**
 * One thread, which has one group at a time; replaced after its end. An idle thread does not keep the process alive.
 */
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

  /** Fails the files of a thread that has ended: their state on disk is unknown, and their callers remove them. */
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
