import { closeSync } from "node:fs";
import { join } from "node:path";
import { InferenceError, type Clock, type Logger } from "@galatea/base";
import { openPipe, openSocketPair, sendDescriptors } from "@galatea/base/system";
import { describeProcessEnd, isAdoptable, spawnProcess, type SpawnedProcess } from "@galatea/base/processes";
import type { ConfinementPlan, MachineFacts } from "./confinement-plan.ts";
import type { PythonEnvironment } from "./python-environment.ts";
import { FrameChannel } from "./frame-channel.ts";
import { decodeJson, readHeader } from "./frame-decoder.ts";
import { encodeFrame, headerBytes, kinds, MalformedRecord } from "./wire.ts";

/** A forked worker process, which continues when the zygote ends. The receiver owns the file descriptors. */
export interface ForkedWorker {
  readonly pid: number;
  readonly socketFd: number;
  /** Closing this descriptor kills the worker. */
  readonly lifelineFd: number;
  /** The read end of the worker's output. */
  readonly outputFd: number;
}

export interface ForkOptions {
  readonly arenaFd: number;
  readonly family: number;
  /** The confinement that the worker applies to itself; null when the zygote has applied it for all of its workers. */
  readonly plan: ConfinementPlan | null;
  /** Memory file with the content of the model's file (`shared-files.ts`). Null: the worker reads the file from disk. */
  readonly fileFd: number | null;
}

export interface ZygoteOptions {
  readonly environment: PythonEnvironment;
  /** Directory of `galatea_zygote.py`. */
  readonly workerDirectory: string;
  readonly modules: readonly string[];
  /** Arguments of `tenant.facts`, for a zygote that forks workers of tenants; empty for other zygotes. */
  readonly tenantArguments: string;
  readonly clock: Clock;
  readonly logger: Logger;
}

const reasonBytesMax = 4096;
/** Time limit of a start in milliseconds. Activating and importing a large environment from a slow disk takes a minute or two. */
const startMsMax = 300_000;
/**
 * Time limit of a fork in milliseconds. A fork takes milliseconds. A zygote that exceeds the limit is stopped or swapped out; it is ended
 * and another one is started.
 */
const forkMsMax = 30_000;

interface PendingFork {
  readonly forked: Omit<ForkedWorker, "pid">;
  readonly resolve: (worker: ForkedWorker) => void;
  readonly reject: (error: Error) => void;
  readonly timer: Disposable;
}

/** The body of a READY frame. */
interface ReadyFacts {
  readonly python: string;
  readonly numpy: string;
  readonly failed: readonly string[];
  readonly threads: number;
  readonly unconfined: string | null;
  readonly machine: MachineFacts | null;
}

/** Parses a READY frame. The interpreter may belong to a tenant, so its messages are as untrusted as those of a worker. */
function readyFacts(frame: Buffer): ReadyFacts {
  if (readHeader(frame).kind !== kinds.zygoteReady)
    throw new MalformedRecord("a zygote that does not report that it is ready");
  const body = decodeJson(frame);
  const { python, numpy, failed, threads, unconfined } = body;
  const isRead =
    typeof python === "string" &&
    typeof numpy === "string" &&
    typeof threads === "number" &&
    (unconfined === null || typeof unconfined === "string") &&
    Array.isArray(failed) &&
    failed.every((one) => typeof one === "string");
  if (!isRead) throw new MalformedRecord("a zygote that reports invalid facts");
  // Only a trusted interpreter, which belongs to the operator, sends this field.
  const machine = (body["machine"] ?? null) as MachineFacts | null;
  return { python, numpy, threads, unconfined, failed, machine };
}

/** The error of a fork whose zygote ended before it responded. A worker that was forked anyway ends. */
export class ZygoteEnded extends InferenceError {
  constructor(options?: ErrorOptions) {
    super("UNAVAILABLE", "the Python zygote has ended", options);
  }
}

/** A Python interpreter that has imported the usual modules and forks workers. The workers are child processes of this process. */
export class Zygote implements AsyncDisposable {
  readonly modules: readonly string[];
  /** The reason why the zygote's workers could access each other's memory (see confinement.py); null if they cannot. */
  readonly unconfined: string | null;
  /** Properties of this machine for confinement plans; null if they were not requested. */
  readonly machine: MachineFacts | null;
  readonly #clock: Clock;
  readonly #logger: Logger;
  readonly #process: SpawnedProcess;
  readonly #channel: FrameChannel;
  /** Pending forks by family number. */
  readonly #pending = new Map<number, PendingFork>();
  readonly #fd: number;
  #alive = true;
  #isClosing = false;
  #onSettled: () => void = () => {};

  private constructor(
    options: ZygoteOptions,
    facts: ReadyFacts,
    process: SpawnedProcess,
    fd: number,
    channel: FrameChannel,
  ) {
    this.modules = options.modules;
    this.#clock = options.clock;
    this.#logger = options.logger;
    this.unconfined = facts.unconfined;
    this.machine = facts.machine;
    this.#process = process;
    this.#fd = fd;
    this.#channel = channel;
  }

  /** Starts an interpreter and waits until it is ready. Throws INTERNAL with the interpreter's last output if the start fails. */
  static async open(options: ZygoteOptions, signal: AbortSignal | null): Promise<Zygote> {
    const { environment, clock, logger } = options;
    const pair = openSocketPair();
    let zygote: Zygote | null = null;
    let child: SpawnedProcess | null = null;
    let malformed: MalformedRecord | null = null;
    const whenReady = Promise.withResolvers<ReadyFacts>();
    const channel = new FrameChannel(pair.ours, {
      onFrame: (frame) => (zygote === null ? whenReady.resolve(readyFacts(frame)) : zygote.#onFrame(frame)),
      onMalformed: (error) => {
        malformed = error;
        logger.error(error.message, { zygote: environment.key });
        child?.signal("SIGKILL");
      },
      onClosed: () => {
        if (zygote !== null) zygote.#onClosed();
      },
    });
    try {
      const script = join(options.workerDirectory, "galatea_zygote.py");
      child = await spawnProcess({
        command: environment.command[0]!,
        args: [...environment.command.slice(1), script, "3", options.tenantArguments, ...options.modules],
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
    const started = child;
    const onAbort = () => started.signal("SIGKILL");
    signal?.addEventListener("abort", onAbort, { once: true });
    if (signal?.aborted || malformed !== null) onAbort();
    using _late = clock.timer(startMsMax, () => {
      logger.error(`the interpreter was not ready within ${startMsMax / 1000} s`, { zygote: environment.key });
      onAbort();
    });
    const first = await Promise.race([whenReady.promise, started.ended]);
    signal?.removeEventListener("abort", onAbort);
    if ("exitCode" in first) {
      channel.close();
      signal?.throwIfAborted();
      const words = child.outputTail().join("\n");
      throw new InferenceError(
        "INTERNAL",
        `the Python environment ${environment.key} cannot be used (${describeProcessEnd(await child.ended)}): ${words}`,
      );
    }
    const facts = first;
    zygote = new Zygote(options, facts, child, pair.ours, channel);
    logger.verbose(`zygote ready: python ${facts.python}, numpy ${facts.numpy}, ${facts.threads} thread(s)`, {
      zygote: environment.key,
      pid: child.pid,
    });
    for (const failed of facts.failed) logger.warning(`not preloaded: ${failed}`, { zygote: environment.key });
    // A process with more than one thread must not fork, and one of the imported modules has started a thread.
    if (facts.threads !== 1 && options.modules.length > 0) {
      await zygote[Symbol.asyncDispose]();
      throw new InferenceError("INTERNAL", `importing ${options.modules.join(", ")} starts threads`);
    }
    return zygote;
  }

  get alive(): boolean {
    return this.#alive;
  }

  /** True when the zygote no longer forks. */
  get isClosing(): boolean {
    return this.#isClosing;
  }

  /** Stops forking. The zygote ends when pending forks are complete. */
  async closeWhenUnused(): Promise<void> {
    this.#isClosing = true;
    while (this.#pending.size > 0) await new Promise<void>((resolve) => (this.#onSettled = resolve));
    await this[Symbol.asyncDispose]();
  }

  get pid(): number {
    return this.#process.pid;
  }

  /**
   * Forks a worker, which receives the memory file `arenaFd` and no other descriptor of this process. `family` is the worker's number in
   * `WorkerFamilies`. If `plan` is null, only the confinement of the zygote applies, which isolates the worker from other processes.
   */
  fork({ arenaFd, family, plan, fileFd }: ForkOptions): Promise<ForkedWorker> {
    return new Promise((resolve, reject) => {
      if (!this.#alive || this.#isClosing) throw new ZygoteEnded();
      const socket = openSocketPair();
      const lifeline = openPipe();
      const output = openPipe();
      const forked = { socketFd: socket.ours, lifelineFd: lifeline.writeFd, outputFd: output.readFd };
      const timer = this.#clock.timer(forkMsMax, () => this.#stuck());
      this.#pending.set(family, { forked, resolve, reject, timer });
      const body = plan === null ? new Uint8Array() : Buffer.from(JSON.stringify(plan));
      const files = fileFd === null ? [] : [fileFd];
      const record = encodeFrame(kinds.zygoteFork, body, { id: family, count: files.length });
      try {
        const theirs = [socket.theirs, lifeline.readFd, output.writeFd, arenaFd, ...files];
        if (!sendDescriptors(this.#fd, record, theirs))
          this.#fail(family, new InferenceError("UNAVAILABLE", "the Python zygote is busy"));
      } catch (error) {
        this.#fail(family, new ZygoteEnded({ cause: error }));
      } finally {
        for (const fd of [socket.theirs, lifeline.readFd, output.writeFd]) closeSync(fd);
      }
    });
  }

  #onFrame(frame: Buffer): void {
    const { kind, id, extra } = readHeader(frame);
    if (kind !== kinds.zygoteForked && kind !== kinds.zygoteForkFailed)
      throw new MalformedRecord(`a zygote's frame of kind ${kind}`);
    const pending = this.#pending.get(id);
    if (pending === undefined) return;
    if (kind === kinds.zygoteForked && !isAdoptable(extra)) {
      // The process with this pid has already been reaped, or the zygote has reported the pid of another process.
      this.#fail(id, new InferenceError("UNAVAILABLE", "cannot fork a Python worker: it exited before it started"));
    } else if (kind === kinds.zygoteForked) {
      this.#pending.delete(id);
      pending.timer[Symbol.dispose]();
      pending.resolve({ pid: extra, ...pending.forked });
      this.#onSettled();
    } else {
      const reason = frame.toString("utf8", headerBytes, headerBytes + reasonBytesMax);
      this.#fail(id, new InferenceError("UNAVAILABLE", `cannot fork a Python worker: ${reason}`));
    }
  }

  #fail(family: number, error: InferenceError): void {
    const pending = this.#pending.get(family);
    if (pending === undefined) return;
    this.#pending.delete(family);
    pending.timer[Symbol.dispose]();
    for (const fd of Object.values(pending.forked)) closeSync(fd);
    pending.reject(error);
    this.#onSettled();
  }

  #onClosed(): void {
    this.#alive = false;
    for (const family of this.#pending.keys()) this.#fail(family, new ZygoteEnded());
  }

  #stuck(): void {
    this.#logger.error(`the Python zygote did not fork within ${forkMsMax / 1000} s and is ended`, { pid: this.pid });
    this.#process.signal("SIGKILL");
    this.#channel.close();
  }

  /** Ends the zygote. Its workers continue. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#onClosed();
    this.#channel.close();
    await this.#process[Symbol.asyncDispose]();
  }
}
