import { Readable } from "node:stream";
import {
  delay,
  EventLoopQueue,
  openDeadline,
  Semaphore,
  TaskGroup,
  type Clock,
  type Logger,
  type YieldOptions,
} from "@galatea/base";
import type { ObjectStore } from "../objects/index.ts";
import { captureLine, type CapturedCall } from "./capture-record.ts";
import type { CaptureSettings } from "./capture-settings.ts";
import type { MirrorLease, EndpointMirrorMemory } from "./mirror-memory.ts";

export interface CaptureLimits {
  /**
   * Milliseconds between the first record of a file and its write. This time plus the duration of the write is below a
   * minute, so a crash loses less than a minute of records.
   */
  readonly fileMsMax: number;
  readonly fileBytesMax: number;
  readonly fileCallsMax: number;
  /** Maximum number of concurrent writes. */
  readonly writesMax: number;
  /** Milliseconds after which a write is cancelled and retried. */
  readonly writeMsMax: number;
  /** Milliseconds before a failed write is retried. */
  readonly againMs: number;
  /** Milliseconds after its first record at which a file that cannot be written is dropped. */
  readonly triedMsMax: number;
  /** Maximum milliseconds for writing the remaining files when the platform ends. */
  readonly lastMsMax: number;
}

export const captureLimits: CaptureLimits = {
  fileMsMax: 30_000,
  fileBytesMax: 8 * 2 ** 20,
  fileCallsMax: 10_000,
  writesMax: 4,
  writeMsMax: 60_000,
  againMs: 5000,
  triedMsMax: 600_000,
  lastMsMax: 10_000,
};

export interface CaptureWriterOptions {
  readonly store: Pick<ObjectStore, "put">;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly newId: () => string;
  readonly limits: CaptureLimits;
}

/** The source of the records in a file. */
export interface CaptureTarget {
  readonly share: EndpointMirrorMemory;
  readonly variantName: string;
  readonly settings: CaptureSettings;
}

interface CaptureFile {
  readonly place: CaptureTarget;
  readonly key: string;
  readonly firstMs: number;
  readonly calls: { readonly call: CapturedCall; readonly lease: MirrorLease }[];
  byteLength: number;
  readonly timer: Disposable;
}

const chunkBytesMin = 64 * 1024;

/**
 * Writes files of captured data. Records stay in memory, without a copy, until their file is written or dropped. They
 * are encoded in chunks, as fast as the store reads them. A failed write is retried for a limited time. Meanwhile, its
 * records keep their leases, so that memory is bounded and new records are dropped.
 */
export class CaptureWriter implements AsyncDisposable {
  readonly #options: CaptureWriterOptions;
  readonly #files = new Map<string, CaptureFile>();
  readonly #loopQueue = new EventLoopQueue();
  readonly #writes: Semaphore;
  readonly #tasks: TaskGroup;
  /** Sources whose last write failed. A failure is logged only when a source is added. */
  readonly #failing = new Set<string>();
  /** Aborts when the platform ends: failed writes are then retried without a pause. */
  readonly #closing = new AbortController();
  readonly #finish = new AbortController();

  constructor(options: CaptureWriterOptions) {
    this.#options = options;
    this.#writes = new Semaphore(options.limits.writesMax);
    this.#tasks = new TaskGroup((error) => {
      options.logger.error("writing captured data has stopped", { error: String(error) });
    });
  }

  /** Adds a record. This object owns the lease from now on, and releases it when the record is written or dropped. */
  add(location: CaptureTarget, call: CapturedCall, lease: MirrorLease): void {
    if (this.#closing.signal.aborted) {
      location.share.lose("not-written");
      return lease.release();
    }
    const id = fileId(location, call.timeMs);
    const file = this.#files.get(id) ?? this.#open(id, location, call.timeMs);
    file.calls.push({ call, lease });
    file.byteLength += lease.bytes;
    const { fileBytesMax, fileCallsMax } = this.#options.limits;
    if (file.byteLength >= fileBytesMax || file.calls.length >= fileCallsMax) this.#close(id, file);
  }

  /** Starts to write all pending records of an endpoint. */
  flush(endpointName: string): void {
    for (const [id, file] of this.#files) if (file.place.share.endpointName === endpointName) this.#close(id, file);
  }

  /**
   * Writes the remaining records. Resolves when all are written, or dropped because they could not be written in time.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const [id, file] of this.#files) this.#close(id, file);
    this.#closing.abort(new Error("the platform ends"));
    const { clock, limits } = this.#options;
    const late = () => this.#finish.abort(new Error("there is no more time to write captured data"));
    using _last = clock.timer(limits.lastMsMax, late);
    await this.#tasks.waitForTasks();
    await this.#tasks[Symbol.asyncDispose]();
  }

  #open(id: string, location: CaptureTarget, firstMs: number): CaptureFile {
    const { clock, limits, newId } = this.#options;
    const timer = clock.timer(limits.fileMsMax, () => this.#close(id, file));
    const key = captureFileKey(location, firstMs, newId());
    const file: CaptureFile = { place: location, key, firstMs, calls: [], byteLength: 0, timer };
    this.#files.set(id, file);
    return file;
  }

  #close(id: string, file: CaptureFile): void {
    if (this.#files.get(id) !== file) return;
    this.#files.delete(id);
    file.timer[Symbol.dispose]();
    this.#tasks.run(() => this.#write(file));
  }

  async #write(file: CaptureFile): Promise<void> {
    const { clock, limits } = this.#options;
    const { share } = file.place;
    const whose = `${share.endpointName} ${file.place.variantName}`;
    try {
      for (;;) {
        const isLast = this.#closing.signal.aborted || clock.epochMs() - file.firstMs >= limits.triedMsMax;
        try {
          await this.#put(file);
          this.#failing.delete(whose);
          return;
        } catch (error) {
          this.#reportWriteFailure(whose, file, error);
        }
        if (isLast) {
          this.#failing.delete(whose);
          return share.lose("not-written", file.calls.length);
        }
        // The pause ends early when the platform ends.
        await delay(clock, limits.againMs, this.#closing.signal).catch(() => {});
      }
    } finally {
      for (const { lease } of file.calls) lease.release();
    }
  }

  async #put({ place, key, calls }: CaptureFile): Promise<void> {
    const { store, clock, limits } = this.#options;
    using _write = await this.#writes.acquire(null);
    using limit = openDeadline({ clock, afterMs: limits.writeMsMax, signal: this.#finish.signal });
    const { signal } = limit;
    const body = Readable.from(linesOf(calls, place.settings, { loopQueue: this.#loopQueue, signal }));
    await store.put(place.settings.bucket, key, body, { contentType: "application/jsonlines", signal });
  }

  #reportWriteFailure(whose: string, { key, calls }: CaptureFile, error: unknown): void {
    if (this.#failing.has(whose)) return;
    this.#failing.add(whose);
    const message = "captured data cannot be written; the write is retried";
    this.#options.logger.warning(message, { key, count: calls.length, error: String(error) });
  }
}

async function* linesOf(
  calls: CaptureFile["calls"],
  settings: CaptureSettings,
  { loopQueue, signal }: YieldOptions,
): AsyncGenerator<Buffer> {
  let text = "";
  for (const { call } of calls) {
    for (const segment of captureLine(call, settings)) {
      text += segment;
      if (text.length < chunkBytesMin) continue;
      yield Buffer.from(text);
      text = "";
      await loopQueue.next(signal);
    }
  }
  if (text !== "") yield Buffer.from(text);
}

/**
 * Returns the id of the file for a record. A file has the records of one variant, one hour and one capture
 * configuration.
 */
function fileId({ share, variantName, settings }: CaptureTarget, timeMs: number): string {
  const hour = new Date(timeMs).toISOString().slice(0, 13);
  const types = [...settings.csvTypes, "|", ...settings.jsonTypes].join(",");
  return [share.endpointName, variantName, settings.bucket, settings.prefix, types, hour].join("\n");
}

/**
 * Returns the object key of a file in SageMaker's format `yyyy/mm/dd/hh/MM-SS-mmm-id.jsonl`, with the time of the first
 * record.
 */
export function captureFileKey({ share, variantName, settings }: CaptureTarget, firstMs: number, id: string): string {
  const [date = "", time = ""] = new Date(firstMs).toISOString().split("T");
  const [hour = "", minute = "", second = ""] = time.split(":");
  const [seconds = "", millis = ""] = second.replace("Z", "").split(".");
  const folder = `${settings.prefix}${share.endpointName}/${variantName}/${date.replaceAll("-", "/")}/${hour}`;
  return `${folder}/${minute}-${seconds}-${millis}-${id}.jsonl`;
}
