import { closeSync } from "node:fs";
import { join } from "node:path";
import { InferenceError, type Clock, type Logger } from "../../base/index.ts";
import { openPipe, openSocketPair, sendDescriptors } from "../../native/index.ts";
import { describeEnd, spawnProcess, type SpawnedProcess } from "../../processes/index.ts";
import type { PythonEnvironment } from "./python-environment.ts";
import { FrameChannel } from "./frame-channel.ts";
import { decodeJson, readHeader } from "./frame-decoder.ts";
import { encodeFrame, headerBytes, kinds } from "./wire.ts";

/** A process of its own from here on: the zygote may end, it does not. The receiver owns the descriptors. */
export interface ForkedWorker {
  readonly pid: number;
  readonly socketFd: number;
  /** Closing it ends the worker at once. */
  readonly lifelineFd: number;
  /** Where the worker prints. */
  readonly outputFd: number;
}

export interface ZygoteOptions {
  readonly environment: PythonEnvironment;
  /** Holds `galatea_zygote.py`. */
  readonly workerDirectory: string;
  readonly modules: readonly string[];
  readonly clock: Clock;
  readonly logger: Logger;
}

interface PendingFork {
  readonly forked: Omit<ForkedWorker, "pid">;
  readonly resolve: (worker: ForkedWorker) => void;
  readonly reject: (error: Error) => void;
}

/** What READY carries. */
interface ReadyFacts {
  readonly python?: string;
  readonly numpy?: string;
  readonly failed?: readonly string[];
  readonly threads?: number;
  readonly unconfined?: string | null;
}

/** A warm interpreter that forks. Everything it forks is a child of this process. */
export class Zygote implements AsyncDisposable {
  readonly modules: readonly string[];
  /** Why its workers could look into each other, see confinement.py; null where they cannot. */
  readonly unconfined: string | null;
  readonly #process: SpawnedProcess;
  readonly #channel: FrameChannel;
  /** By family. */
  readonly #pending = new Map<number, PendingFork>();
  readonly #fd: number;
  #alive = true;
  #isRetired = false;
  #onSettled: () => void = () => {};

  private constructor(
    options: ZygoteOptions,
    unconfined: string | null,
    process: SpawnedProcess,
    fd: number,
    channel: FrameChannel,
  ) {
    this.modules = options.modules;
    this.unconfined = unconfined;
    this.#process = process;
    this.#fd = fd;
    this.#channel = channel;
  }

  /** Starts an interpreter and waits until it is warm. Throws INTERNAL with its last words when it is not to be had. */
  static async open(options: ZygoteOptions, signal: AbortSignal | null): Promise<Zygote> {
    const { environment, clock, logger } = options;
    const pair = openSocketPair();
    let zygote: Zygote | null = null;
    let ready: (body: Record<string, unknown>) => void = () => {};
    const whenReady = new Promise<Record<string, unknown>>((resolve) => (ready = resolve));
    const channel = new FrameChannel(pair.ours, {
      onFrame: (frame) => (zygote === null ? ready(decodeJson(frame)) : zygote.#onFrame(frame)),
      onMalformed: (error) => logger.error(error.message),
      onClosed: () => {
        if (zygote !== null) zygote.#onClosed();
      },
    });
    let child: SpawnedProcess;
    try {
      const script = join(options.workerDirectory, "galatea_zygote.py");
      child = await spawnProcess({
        command: environment.command[0]!,
        args: [...environment.command.slice(1), script, "3", ...options.modules],
        env: environment.env,
        cwd: null,
        extraFds: [pair.theirs],
        onLine: (line) => logger.warning(line, { zygote: environment.key }),
        onExit: () => channel.close(),
        clock,
      });
    } catch (error) {
      channel.close();
      const message = `cannot start the Python interpreter ${environment.command[0]!}: ${(error as Error).message}`;
      throw new InferenceError("INTERNAL", message, { cause: error });
    } finally {
      closeSync(pair.theirs);
    }
    const onAbort = () => child.signal("SIGKILL");
    signal?.addEventListener("abort", onAbort, { once: true });
    if (signal?.aborted) onAbort();
    const first = await Promise.race([whenReady, child.ended]);
    signal?.removeEventListener("abort", onAbort);
    if ("exitCode" in first) {
      const words = child.outputTail().join("\n");
      throw new InferenceError(
        "INTERNAL",
        `the Python environment ${environment.key} cannot be used (${describeEnd(await child.ended)}): ${words}`,
      );
    }
    const facts = first as ReadyFacts;
    zygote = new Zygote(options, facts.unconfined ?? null, child, pair.ours, channel);
    logger.verbose(`zygote ready: python ${facts.python}, numpy ${facts.numpy}, ${facts.threads} thread(s)`, {
      zygote: environment.key,
      pid: child.pid,
    });
    for (const failed of facts.failed ?? [])
      logger.warning(`not imported ahead: ${failed}`, { zygote: environment.key });
    // More than one thread: what was imported ahead spoils this interpreter for forking.
    if (facts.threads !== 1 && options.modules.length > 0) {
      await zygote[Symbol.asyncDispose]();
      throw new InferenceError("INTERNAL", `importing ${options.modules.join(", ")} starts threads`);
    }
    return zygote;
  }

  get alive(): boolean {
    return this.#alive;
  }

  /** It forks no more. */
  get isRetired(): boolean {
    return this.#isRetired;
  }

  /** Forks no more from now on, and ends when what is under way is done. */
  async retire(): Promise<void> {
    this.#isRetired = true;
    while (this.#pending.size > 0) await new Promise<void>((resolve) => (this.#onSettled = resolve));
    await this[Symbol.asyncDispose]();
  }

  get pid(): number {
    return this.#process.pid;
  }

  /** Forks a worker that sees the memory file `arenaFd` and nothing else of this process. `family` is its number in `WorkerFamilies`. */
  fork(arenaFd: number, family: number): Promise<ForkedWorker> {
    return new Promise((resolve, reject) => {
      if (!this.#alive || this.#isRetired) throw new InferenceError("UNAVAILABLE", "the Python zygote has ended");
      const socket = openSocketPair();
      const lifeline = openPipe();
      const output = openPipe();
      const forked = { socketFd: socket.ours, lifelineFd: lifeline.writeFd, outputFd: output.readFd };
      this.#pending.set(family, { forked, resolve, reject });
      const record = encodeFrame(kinds.zygoteFork, new Uint8Array(), { id: family });
      try {
        const theirs = [socket.theirs, lifeline.readFd, output.writeFd, arenaFd];
        if (!sendDescriptors(this.#fd, record, theirs))
          this.#fail(family, new InferenceError("UNAVAILABLE", "the Python zygote is busy"));
      } catch (error) {
        this.#fail(family, new InferenceError("UNAVAILABLE", "the Python zygote has ended", { cause: error }));
      } finally {
        for (const fd of [socket.theirs, lifeline.readFd, output.writeFd]) closeSync(fd);
      }
    });
  }

  #onFrame(frame: Buffer): void {
    const { kind, id, extra } = readHeader(frame);
    const pending = this.#pending.get(id);
    if (pending === undefined) return;
    if (kind === kinds.zygoteForked) {
      this.#pending.delete(id);
      pending.resolve({ pid: extra, ...pending.forked });
      this.#onSettled();
    } else if (kind === kinds.zygoteForkFailed) {
      const reason = frame.toString("utf8", headerBytes);
      this.#fail(id, new InferenceError("UNAVAILABLE", `cannot fork a Python worker: ${reason}`));
    }
  }

  #fail(family: number, error: InferenceError): void {
    const pending = this.#pending.get(family);
    if (pending === undefined) return;
    this.#pending.delete(family);
    for (const fd of Object.values(pending.forked)) closeSync(fd);
    pending.reject(error);
    this.#onSettled();
  }

  #onClosed(): void {
    this.#alive = false;
    for (const family of this.#pending.keys())
      this.#fail(family, new InferenceError("UNAVAILABLE", "the Python zygote has ended"));
  }

  /** Its workers go on. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#alive = false;
    this.#channel.close();
    await this.#process[Symbol.asyncDispose]();
  }
}
