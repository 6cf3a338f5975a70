import { rm } from "node:fs/promises";
import type { Readable } from "node:stream";
import { Worker } from "node:worker_threads";
import { makeSharedDirectory } from "@galatea/base";
import { ArchiveError, type ArchiveLimits, type UnpackedArchive } from "./archive.ts";
import type { UnpackThreadReply, UnpackThreadRequest } from "./archive-worker.ts";

export interface UnpackerOptions {
  /** Maximum number of unpacking threads. They are started at the first use or by `prepare`. */
  readonly threadCount: number;
  /** Maximum bytes per archive that were sent to a thread and are not consumed yet. */
  readonly aheadBytesMax: number;
  /**
   * Directory in which equal files of different trees are stored once, on the same file system as the destinations.
   * Null: files are not shared.
   */
  readonly contentDirectory: string | null;
  readonly sharedBytesMin: number;
  readonly limits: ArchiveLimits;
}

/** Size of a thread's young generation in MiB. It can be small, because archive data is outside the JavaScript heap. */
const youngMebibytesMax = 8;

export const unpackerDefaults = { threadCount: 2, aheadBytesMax: 8 * 2 ** 20, sharedBytesMin: 64 * 2 ** 10 } as const;

interface Job {
  readonly thread: Thread;
  readonly credit: (byteLength: number, expandedBytes: number) => void;
  readonly settle: (outcome: UnpackThreadReply | ArchiveError) => void;
}

interface Thread {
  readonly worker: Worker;
  jobCount: number;
}

/**
 * Unpacks tar and tar.gz streams as they arrive. Worker threads inflate, hash and write, so that the serving thread
 * only transfers chunks. Errors are ArchiveError; the destination is removed after an error.
 */
export class ArchiveUnpacker implements AsyncDisposable {
  readonly #options: UnpackerOptions;
  readonly #threads: Thread[] = [];
  readonly #jobs = new Map<number, Job>();
  #lastJob = 0;
  #closed = false;

  constructor(options: UnpackerOptions) {
    this.#options = options;
  }

  get contentDirectory(): string | null {
    return this.#options.contentDirectory;
  }

  /** Starts a thread if there is none, so that the first archive does not wait for the start. */
  prepare(): void {
    if (!this.#closed && this.#threads.length === 0) this.#startThread();
  }

  /**
   * Unpacks an archive to `destination`, which must not exist and is removed after a failure. `source` is consumed or
   * destroyed in every case. `onProgress` receives the bytes written so far. If it throws, for example to enforce a
   * quota, the call rejects with its error.
   */
  async unpack(
    source: Readable,
    destination: string,
    options: { readonly signal: AbortSignal; readonly onProgress?: (expandedBytes: number) => void },
  ): Promise<UnpackedArchive> {
    const job = (this.#lastJob += 1);
    try {
      if (this.#closed) throw new ArchiveError("io", "the unpacker is closed");
      options.signal.throwIfAborted();
      await makeSharedDirectory(destination);
      options.signal.throwIfAborted();
    } catch (error) {
      source.destroy();
      throw options.signal.aborted ? options.signal.reason : ArchiveError.from(error);
    }
    const thread = this.#leastBusyThread();
    thread.jobCount += 1;
    thread.worker.ref();
    try {
      return await this.#run(job, thread, { source, destination, ...options });
    } catch (error) {
      // A failed thread removes its files. This line removes the files of a thread that has crashed.
      await rm(destination, { recursive: true, force: true });
      throw error;
    } finally {
      thread.jobCount -= 1;
      if (thread.jobCount === 0) thread.worker.unref();
      this.#jobs.delete(job);
      source.destroy();
    }
  }

  /**
   * Resolves with true if `destination` has not changed since it was unpacked. Rejects with ArchiveError if it cannot
   * be read.
   */
  async check(destination: string, tree: UnpackedArchive, signal: AbortSignal): Promise<boolean> {
    signal.throwIfAborted();
    if (this.#closed) throw new ArchiveError("io", "the unpacker is closed");
    const job = (this.#lastJob += 1);
    const thread = this.#leastBusyThread();
    const { promise, resolve, reject } = Promise.withResolvers<boolean>();
    const settle = (message: UnpackThreadReply | ArchiveError) => {
      if (message instanceof ArchiveError) reject(message);
      else if (message.kind === "checked") resolve(message.isWhole);
      else if (message.kind === "failed") reject(new ArchiveError(message.reason, message.message));
    };
    this.#jobs.set(job, { thread, credit: () => {}, settle });
    const onAbort = () => post(thread, { kind: "abort", job });
    signal.addEventListener("abort", onAbort, { once: true });
    thread.jobCount += 1;
    thread.worker.ref();
    try {
      post(thread, { kind: "check", job, destination, tree });
      return await promise;
    } catch (error) {
      throw signal.aborted ? signal.reason : error;
    } finally {
      signal.removeEventListener("abort", onAbort);
      thread.jobCount -= 1;
      if (thread.jobCount === 0) thread.worker.unref();
      this.#jobs.delete(job);
    }
  }

  async #run(
    job: number,
    thread: Thread,
    options: {
      readonly source: Readable;
      readonly destination: string;
      readonly signal: AbortSignal;
      readonly onProgress?: (expandedBytes: number) => void;
    },
  ): Promise<UnpackedArchive> {
    const { contentDirectory, sharedBytesMin, limits, aheadBytesMax } = this.#options;
    const state = { aheadBytes: 0, failed: false, failure: null as unknown, settled: false, wake: () => {} };
    const stop = (error: unknown) => {
      if (!state.failed) state.failure = error;
      state.failed = true;
      post(thread, { kind: "abort", job });
      // Without this, a source that waits for data would block the loop below.
      options.source.destroy();
      state.wake();
    };
    const outcome = new Promise<UnpackedArchive>((resolve, reject) => {
      this.#jobs.set(job, {
        thread,
        credit: (byteLength, expandedBytes) => {
          state.aheadBytes -= byteLength;
          try {
            options.onProgress?.(expandedBytes);
          } catch (error) {
            stop(error);
          }
          state.wake();
        },
        settle: (message) => {
          state.settled = true;
          options.source.destroy();
          state.wake();
          if (message instanceof ArchiveError) reject(message);
          else if (message.kind === "done") resolve(message.tree);
          else if (message.kind === "failed") reject(new ArchiveError(message.reason, message.message));
        },
      });
    });
    const settling = Promise.allSettled([outcome]);
    const onAbort = () => stop(options.signal.reason);
    options.signal.addEventListener("abort", onAbort, { once: true });
    const { destination } = options;
    post(thread, { kind: "start", job, tree: { destination, contentDirectory, sharedBytesMin, limits } });
    try {
      for await (const chunk of options.source as AsyncIterable<Buffer>) {
        state.aheadBytes += chunk.length;
        send(thread, job, chunk);
        while (state.aheadBytes >= aheadBytesMax && !state.settled && !state.failed) {
          await new Promise<void>((resolve) => {
            state.wake = resolve;
          });
        }
        if (state.settled || state.failed) break;
      }
      post(thread, { kind: "end", job });
    } catch (error) {
      if (!state.settled) stop(error);
    }
    await settling;
    options.signal.removeEventListener("abort", onAbort);
    if (state.failed) throw state.failure;
    return await outcome;
  }

  #leastBusyThread(): Thread {
    const idle = this.#threads.find((thread) => thread.jobCount === 0);
    if (idle !== undefined) return idle;
    if (this.#threads.length < this.#options.threadCount) return this.#startThread();
    return this.#threads.reduce((least, thread) => (thread.jobCount < least.jobCount ? thread : least));
  }

  #startThread(): Thread {
    const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
    const url = new URL(`./archive-worker.${extension}`, import.meta.url);
    const worker = new Worker(url, { resourceLimits: { maxYoungGenerationSizeMb: youngMebibytesMax } });
    const thread: Thread = { worker, jobCount: 0 };
    worker.on("message", (message: UnpackThreadReply) => {
      const job = this.#jobs.get(message.job);
      if (message.kind === "credit") job?.credit(message.byteLength, message.expandedBytes);
      else job?.settle(message);
    });
    worker.on("error", (error) => this.#loseThread(thread, error));
    worker.on("exit", () => this.#loseThread(thread, new Error("the unpacking thread ended")));
    worker.unref();
    this.#threads.push(thread);
    return thread;
  }

  #loseThread(thread: Thread, cause: Error): void {
    const index = this.#threads.indexOf(thread);
    if (index >= 0) this.#threads.splice(index, 1);
    for (const job of this.#jobs.values()) {
      if (job.thread === thread) job.settle(new ArchiveError("io", `unpacking failed: ${cause.message}`, { cause }));
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#closed = true;
    await Promise.all(this.#threads.map((thread) => thread.worker.terminate()));
  }
}

function post(thread: Thread, message: UnpackThreadRequest): void {
  thread.worker.postMessage(message, []);
}

/**
 * Sends a chunk to a thread. Transfers the buffer without a copy if the chunk owns it; copies a chunk that is part of a
 * pool.
 */
function send(thread: Thread, job: number, chunk: Buffer): void {
  const complete = chunk.byteOffset === 0 && chunk.byteLength === chunk.buffer.byteLength;
  const bytes = complete && chunk.buffer instanceof ArrayBuffer ? new Uint8Array(chunk.buffer) : new Uint8Array(chunk);
  thread.worker.postMessage({ kind: "data", job, bytes } satisfies UnpackThreadRequest, [bytes.buffer]);
}
