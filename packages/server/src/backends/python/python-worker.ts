import { closeSync } from "node:fs";
import { Socket } from "node:net";
import { assert, InferenceError, type Clock, type Logger } from "@galatea/base";
import { signalGroup } from "@galatea/base/system";
import { describeProcessEnd, OutputLines, watchAdoptedChild, type ProcessEnd } from "@galatea/base/processes";
import type { Arena } from "../../tensor/index.ts";
import type { NamespaceMetrics } from "../namespace-metrics.ts";
import type { BlsClient } from "../bls-client.ts";
import type { PythonCallingExecution } from "./calling-execution.ts";
import { FrameChannel } from "./frame-channel.ts";
import { LentBlocks } from "./lent-blocks.ts";
import { decodeJson, decodeFields, readHeader } from "./frame-decoder.ts";
import { frameLimits } from "./frame-limits.ts";
import { LogRate } from "./log-rate.ts";
import { encodeFrame, encodeJson, frameBytesMax, kinds, MalformedRecord } from "./wire.ts";
import type { PythonEnvironment } from "./python-environment.ts";
import type { SharedFile } from "./shared-files.ts";
import { WorkerCalls } from "./worker-calls.ts";
import { WorkerMetrics } from "./worker-metrics.ts";
import type { ForkedWorker } from "./zygote.ts";

export interface WorkerEvents {
  /**
   * Receives RESULT, SPACE_REQUEST, RELEASED, RESPONSE and RAISED frames, which are valid only during the call. May throw MalformedRecord.
   */
  onExecutionFrame(frame: Buffer): void;
  /** Returns the execution that made a call to another model; null if the execution has ended. */
  callingExecution(executionId: number): PythonCallingExecution | null;
}

export interface WorkerOptions {
  /** Environment of the zygote that has forked the worker. */
  readonly environment: PythonEnvironment;
  readonly others: BlsClient;
  readonly metrics: NamespaceMetrics;
  /** The arena that contains the namespace's tensors. */
  readonly arena: Arena;
  readonly inlineBytesMax: number;
  /** The model's file in shared memory; null when it is not shared. `startWorker` disposes it after the process has ended. */
  readonly file: SharedFile | null;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Receives a line of the worker's output. */
  readonly print: (line: string) => void;
}

interface LifecycleCall {
  readonly replyKind: number;
  readonly resolve: (body: Record<string, unknown>) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Time in milliseconds to read the remaining output of an ended process. The limit is needed because a child process may keep the pipe open
 * for ever.
 */
const lastOutputMs = 200;
const logLevels = ["info", "warning", "error", "verbose"] as const;

/** A forked worker process: its socket, output, lent blocks and end. The instance interprets frames about executions. */
export class PythonWorker {
  readonly pid: number;
  /** Name for messages; once the worker belongs to an instance, the instance's name. */
  name: string;
  /** True if the model has auto_complete_config. */
  completes = false;
  /** Calls other models on behalf of this worker's model. */
  others: BlsClient;
  readonly lent = new LentBlocks();
  readonly environment: PythonEnvironment;
  readonly file: SharedFile | null;
  /** Resolves with the reason why the worker ended, after the process was reaped and its lent blocks were released. */
  readonly ended: Promise<string>;
  readonly #options: WorkerOptions;
  readonly #lifelineFd: number;
  readonly #channel: FrameChannel;
  readonly #output: Socket;
  readonly #lines: OutputLines;
  readonly #logRate: LogRate;
  /** Created at the worker's first call of another model. */
  #calls: WorkerCalls | null = null;
  /** Created with the first custom metric of the worker's model. */
  #metrics: WorkerMetrics | null = null;
  #events: WorkerEvents | null = null;
  #call: LifecycleCall | null = null;
  #killedBecause: string | null = null;
  #alive = true;

  constructor(name: string, forked: ForkedWorker, options: WorkerOptions) {
    this.name = name;
    this.#options = options;
    this.environment = options.environment;
    this.file = options.file;
    this.others = options.others;
    this.pid = forked.pid;
    this.#lifelineFd = forked.lifelineFd;
    this.#lines = new OutputLines(options.clock, options.print);
    this.#logRate = new LogRate(options.clock, frameLimits.logLinesPerSecondMax, (lineCount) =>
      options.logger.warning(
        `... ${lineCount} lines not shown: more than ${frameLimits.logLinesPerSecondMax} lines per second`,
        { instance: this.name },
      ),
    );
    this.#output = new Socket({ fd: forked.outputFd, readable: true, writable: false });
    this.#output.on("data", (chunk: Buffer) => this.#lines.push(chunk));
    this.#output.on("end", () => this.#lines.end());
    this.#output.on("error", (error) =>
      options.logger.warning(`reading output: ${error.message}`, { instance: this.name }),
    );
    this.#channel = new FrameChannel(forked.socketFd, {
      onFrame: (frame) => this.#onFrame(frame),
      onMalformed: (error) => this.kill(error.message),
      // Without its socket, a worker is unusable, even if the process continues.
      onClosed: () => this.#closedChannel(),
    });
    this.ended = new Promise((resolve) => {
      watchAdoptedChild(forked.pid, (end) => void this.#onReaped(end).then(resolve));
    });
  }

  get alive(): boolean {
    return this.#alive;
  }

  outputTail(): readonly string[] {
    return this.#lines.tail;
  }

  /** Sends frames about executions to `events` from now on. */
  attach(events: WorkerEvents): void {
    this.#events = events;
  }

  /** Sends a frame at the end of this event loop tick and returns its number (`FrameChannel.sendSoon`). */
  sendSoon(frame: Uint8Array): number {
    return this.#channel.sendSoon(frame);
  }

  send(frame: Uint8Array): number {
    return this.#channel.send(frame);
  }

  /** Returns whether the worker had already ended when the frame with this number was sent. */
  neverGot(frameNumber: number): boolean {
    return frameNumber >= this.#channel.firstLost;
  }

  /** Runs one step of the worker's lifecycle: sends `body` and resolves with the reply. Rejects with INTERNAL if the model fails. */
  async call(
    kind: number,
    replyKind: number,
    body: unknown,
    signal: AbortSignal | null,
  ): Promise<Record<string, unknown>> {
    assert(this.#call === null, "a worker changes its state one step at a time");
    const frame = encodeJson(kind, body);
    if (frame.byteLength > frameBytesMax)
      throw new InferenceError(
        "INVALID_ARG",
        `the model's configuration takes ${frame.byteLength} bytes; the Python backend accepts at most ${frameBytesMax}`,
      );
    if (!this.#alive) throw new InferenceError("INTERNAL", await this.ended);
    const onAbort = () => this.kill("the load was cancelled");
    signal?.addEventListener("abort", onAbort, { once: true });
    if (signal?.aborted) onAbort();
    try {
      return await new Promise((resolve, reject) => {
        this.#call = { replyKind, resolve, reject };
        this.#channel.send(frame);
      });
    } finally {
      this.#call = null;
      signal?.removeEventListener("abort", onAbort);
    }
  }

  /** Calls the model's `finalize` and ends the process; after `graceMs`, kills it. */
  async finalize(graceMs: number): Promise<void> {
    if (this.#alive) {
      this.#channel.send(encodeFrame(kinds.finalize, new Uint8Array()));
      using _force = this.#options.clock.timer(graceMs, () => this.kill(`it did not finalize within ${graceMs} ms`));
      await this.ended;
    }
    await this.ended;
  }

  /** Kills the process and all processes of its group. */
  kill(reason: string): void {
    if (!this.#alive) return;
    this.#killedBecause ??= reason;
    if (!signalGroup(this.pid, 9)) process.kill(this.pid, "SIGKILL");
  }

  /** Makes the worker print the Python stack of every thread to its output. This works even while the process executes code. */
  printStacks(): void {
    if (this.#alive) process.kill(this.pid, "SIGUSR2");
  }

  #closedChannel(): void {
    if (this.#alive && this.#killedBecause === null && signalGroup(this.pid, 0)) this.#endAfterGrace();
  }

  /**
   * Kills the process after a delay, unless it ends before. The socket is closed but the process was not reaped: it is ending, or model
   * code has closed the socket's descriptor.
   */
  #endAfterGrace(): void {
    const timer = this.#options.clock.timer(lastOutputMs, () => this.kill("it closed its socket"));
    void this.ended.then(() => timer[Symbol.dispose]());
  }

  #onFrame(frame: Buffer): void {
    const { kind, extra } = readHeader(frame);
    if (executionKinds.has(kind)) {
      if (this.#events === null) throw new MalformedRecord(`a frame of kind ${kind} before its model was loaded`);
      this.#events.onExecutionFrame(frame);
    } else if (callKinds.has(kind)) this.#otherModels().onFrame(frame);
    else if (metricKinds.has(kind)) this.#ownMetrics().onFrame(frame);
    else if (kind === kinds.log) this.#log(extra, frame);
    else if (kind === kinds.failed && this.#call !== null) this.#call.reject(failureOf(frame));
    else if (kind === this.#call?.replyKind) this.#call.resolve(decodeJson(frame));
    else if (kind !== kinds.hello && kind !== kinds.finalized) throw new MalformedRecord(`a frame of kind ${kind}`);
  }

  #otherModels(): WorkerCalls {
    const { arena, inlineBytesMax } = this.#options;
    const others = () => this.others;
    const executionOf = (executionId: number) => this.#events?.callingExecution(executionId) ?? null;
    return (this.#calls ??= new WorkerCalls({ worker: this, others, arena, inlineBytesMax, executionOf }));
  }

  #ownMetrics(): WorkerMetrics {
    return (this.#metrics ??= new WorkerMetrics(this.#options.metrics, (response) => this.#sendResponse(response)));
  }

  /**
   * Sends a response to the worker. A correct worker waits for each response. Without this limit, responses to a worker that does not read
   * them would accumulate.
   */
  #sendResponse(frame: Uint8Array): void {
    if (this.#channel.unsentCount > frameLimits.unreadFramesMax)
      throw new MalformedRecord("requests about metrics whose responses it does not read");
    this.send(frame);
  }

  #log(level: number, frame: Buffer): void {
    if (!this.#logRate.admits()) return;
    const body = decodeFields(frame);
    const location = `${String(body.get("file"))}:${String(body.get("line"))}`;
    this.#options.logger[logLevels[level] ?? "info"](String(body.get("message")), {
      instance: this.name,
      place: location,
    });
  }

  async #onReaped(end: ProcessEnd): Promise<string> {
    this.#alive = false;
    // Child processes may still use the output and have the arena mapped.
    signalGroup(this.pid, 9);
    await this.#lastOutput();
    closeSync(this.#lifelineFd);
    this.#output.destroy();
    this.#lines.end();
    // Responses that were sent before the end are valid.
    this.#channel.drain();
    this.#channel.close();
    this.#logRate.end();
    this.#calls?.end();
    this.#metrics?.end();
    this.lent.endAll();
    const reason = this.#reason(end);
    this.#call?.reject(new InferenceError("INTERNAL", reason));
    return reason;
  }

  #lastOutput(): Promise<void> {
    if (this.#output.readableEnded || this.#output.destroyed) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = this.#options.clock.timer(lastOutputMs, resolve);
      this.#output.once("close", () => {
        timer[Symbol.dispose]();
        resolve();
      });
    });
  }

  #reason(end: ProcessEnd): string {
    const why = this.#killedBecause === null ? "" : `, ended because of: ${this.#killedBecause}`;
    const tail = this.#lines.tail;
    const words = tail.length === 0 ? "" : `; last output:\n${tail.join("\n")}`;
    return `Stub process '${this.name}' is not healthy. (${describeProcessEnd(end)}${why}${words})`;
  }
}

const executionKinds: ReadonlySet<number> = new Set([
  kinds.result,
  kinds.spaceRequest,
  kinds.released,
  kinds.response,
  kinds.raised,
]);

const callKinds: ReadonlySet<number> = new Set([
  kinds.call,
  kinds.callSpaceRequest,
  kinds.callCancel,
  kinds.callCredit,
  kinds.control,
]);

const metricKinds: ReadonlySet<number> = new Set([
  kinds.metricFamily,
  kinds.metric,
  kinds.metricValue,
  kinds.metricsReleased,
]);

const failureTextMax = 65_536;

function failureOf(frame: Buffer): InferenceError {
  const body = decodeFields(frame);
  const message = body.get("message");
  if (typeof message !== "string") throw new MalformedRecord("a failure without its text");
  const reason = body.get("outOfMemory") === true ? "out-of-memory" : null;
  return new InferenceError("INTERNAL", message.slice(0, failureTextMax), { reason });
}
