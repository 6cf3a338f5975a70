import { fileURLToPath } from "node:url";
import type { Writable } from "node:stream";
import type { Clock } from "@galatea/base";
import { describeProcessEnd, spawnProcess, type SpawnedProcess } from "@galatea/base/processes";
import type { DigestName } from "./checksum.ts";
import { parseHashReply, formatHashRequest } from "./hash-lines.ts";
import type { HashRequest, HashReply } from "./hash-worker.ts";

/**
 * The hash of a file that is being written, computed in another process. Disposing it before `end` cancels the
 * computation.
 */
export interface FileHash extends Disposable {
  /** Reports that the first `byteLength` bytes are written. */
  written(byteLength: number): void;
  end(byteLength: number): Promise<Partial<Record<DigestName, string>>>;
}

interface Waiter {
  resolve(digests: Partial<Record<DigestName, string>>): void;
  reject(error: Error): void;
}

/** Idle milliseconds after which the process ends, because it uses about 40 MB. */
const idleMs = 60_000;
/** Maximum bytes of a reply: the digests of one body, or an error. */
const replyBytesMax = 64 * 1024;

/**
 * Hashes long bodies in a low-priority process. On a machine with two processors, the 99th percentile of one client's
 * latency was 16 ms with hashing threads in the serving process (`bench/rows/busy.ts`). It was 11 ms with niced
 * threads, because Linux shares CPU time between sessions, and containers and clients run in other sessions. A niced
 * process in its own session reduces it to 5 ms. The process exists while bodies arrive, and for one more minute.
 */
export class HashPool implements AsyncDisposable {
  readonly #clock: Clock;
  readonly #threadsMax: number;
  #process: HashProcess | null = null;
  #bodyCount = 0;
  #idle: Disposable | null = null;

  constructor(clock: Clock, threadsMax: number) {
    this.#clock = clock;
    this.#threadsMax = threadsMax;
  }

  /** Starts to hash a file from `offset` on, while it is being written. */
  follow(path: string, names: readonly DigestName[], offset: number): FileHash {
    this.#idle?.[Symbol.dispose]();
    if (this.#process === null || this.#process.hasEnded) {
      this.#process = new HashProcess(this.#clock, this.#threadsMax);
    }
    const hash = this.#process.follow(path, names, offset);
    let isCounted = true;
    this.#bodyCount += 1;
    return {
      written: (byteLength) => hash.written(byteLength),
      end: (byteLength) => hash.end(byteLength),
      [Symbol.dispose]: () => {
        hash[Symbol.dispose]();
        if (!isCounted) return;
        isCounted = false;
        this.#bodyCount -= 1;
        if (this.#bodyCount === 0) this.#endLater();
      },
    };
  }

  #endLater(): void {
    const idle = this.#process;
    this.#idle = this.#clock.timer(idleMs, () => {
      this.#process = null;
      void idle?.[Symbol.asyncDispose]();
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#idle?.[Symbol.dispose]();
    await this.#process?.[Symbol.asyncDispose]();
  }
}

/** One run of the hashing process. */
class HashProcess implements AsyncDisposable {
  readonly #started: Promise<SpawnedProcess>;
  /** Null until the process has started. */
  #input: Writable | null = null;
  /** Requests that arrive before the process has started, which takes a few milliseconds. */
  readonly #early: string[] = [];
  #nextId = 1;
  #end: Error | null = null;
  readonly #waiting = new Map<number, Waiter>();
  readonly #failed = new Map<number, string>();

  constructor(clock: Clock, threadsMax: number) {
    this.#started = spawnProcess({
      command: process.execPath,
      args: [ownProgram(), String(threadsMax)],
      env: {},
      cwd: null,
      extraFds: [],
      takesInput: true,
      outputLimits: { lineBytesMax: replyBytesMax, tailLines: 20, rate: null },
      onLine: (line, stream) => {
        const reply = stream === "stdout" ? parseHashReply(line) : null;
        if (reply !== null) this.#settle(reply);
      },
      onExit: (end) => this.#ended(new Error(`the hashing process has ended: ${describeProcessEnd(end)}`)),
      clock,
    });
    this.#started.then(
      ({ input }) => {
        this.#input = input;
        for (const line of this.#early.splice(0)) input?.write(line);
      },
      (error: unknown) => this.#ended(error as Error),
    );
  }

  get hasEnded(): boolean {
    return this.#end !== null;
  }

  follow(path: string, names: readonly DigestName[], offset: number): FileHash {
    const id = this.#nextId;
    this.#nextId += 1;
    this.#send({ at: "open", id, path, offset, names });
    let isLive = true;
    return {
      written: (byteLength) => this.#send({ at: "written", id, byteLength }),
      end: (byteLength) =>
        new Promise((resolve, reject) => {
          isLive = false;
          if (this.#end !== null) return reject(this.#end);
          const early = this.#failed.get(id);
          if (early !== undefined) return reject(new Error(`hashing failed: ${early}`));
          this.#waiting.set(id, { resolve, reject });
          this.#send({ at: "end", id, byteLength });
        }),
      [Symbol.dispose]: () => {
        this.#failed.delete(id);
        if (isLive) this.#send({ at: "cancel", id });
        isLive = false;
      },
    };
  }

  #send(request: HashRequest): void {
    if (this.#end !== null) return;
    if (this.#input === null) this.#early.push(formatHashRequest(request));
    else this.#input.write(formatHashRequest(request));
  }

  #settle(reply: HashReply): void {
    const waiter = this.#waiting.get(reply.id);
    if (waiter === undefined) {
      if ("failure" in reply) this.#failed.set(reply.id, reply.failure);
      return;
    }
    this.#waiting.delete(reply.id);
    if ("failure" in reply) waiter.reject(new Error(`hashing failed: ${reply.failure}`));
    else waiter.resolve(reply.digests);
  }

  #ended(error: Error): void {
    this.#end ??= error;
    this.#early.length = 0;
    for (const waiter of this.#waiting.values()) waiter.reject(this.#end);
    this.#waiting.clear();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ended(new Error("the object store is closing"));
    const started = await this.#started.catch(() => null);
    await started?.[Symbol.asyncDispose]();
  }
}

function ownProgram(): string {
  const program = fileURLToPath(new URL("./hash-process-worker.ts", import.meta.url));
  return import.meta.url.endsWith(".ts") ? program : program.replace(/ts$/, "js");
}
