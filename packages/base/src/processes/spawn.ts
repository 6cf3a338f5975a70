import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { closeSync } from "node:fs";
import type { Writable } from "node:stream";
import type { Clock } from "../core/index.ts";
import { armLifeline, openPipe, signalGroup } from "../system/index.ts";
import { defaultOutputLimits, OutputLines, type OutputLimits } from "./output-lines.ts";
import type { ProcessEnd } from "./process-end.ts";
import { readProcessStart, type ProcessIdentity } from "./process-identity.ts";

export interface SpawnOptions {
  readonly command: string;
  readonly args: readonly string[];
  /** The complete environment of the child. */
  readonly env: Readonly<Record<string, string>>;
  /** The child's working directory; null: that of this process. */
  readonly cwd: string | null;
  /**
   * Descriptors of this process that the child inherits as 3, 4, ... They stay open in this process, and the caller
   * must close them.
   */
  readonly extraFds: readonly number[];
  /** True if the child has a standard input (`SpawnedProcess.input`). Otherwise its standard input is empty. */
  readonly takesInput?: boolean;
  /** Called for each line that the child printed. */
  readonly onLine: (line: string, stream: "stdout" | "stderr") => void;
  /** Called once, after the last call of `onLine`. */
  readonly onExit: (end: ProcessEnd) => void;
  readonly clock: Clock;
  readonly outputLimits?: OutputLimits;
}

/**
 * Time limit for reading the remaining output of a child that has ended. Without this limit, a daemon that the child
 * started could keep the pipe open for ever.
 */
const remainingOutputMs = 1000;

/**
 * A running child, which leads a process group of its own. Disposing it kills the group and waits until the child has
 * ended.
 */
export interface SpawnedProcess extends AsyncDisposable, ProcessIdentity {
  /** Resolves when the process has ended and its output was read. */
  readonly ended: Promise<ProcessEnd>;
  /** The child's standard input; null without `takesInput`. Writes to a child that has ended are lost without an error. */
  readonly input: Writable | null;
  /** Returns the last lines of the child's standard output, followed by those of its standard error. */
  outputTail(): readonly string[];
  /** Sends a signal only to the child, not to its group. Does nothing if the child has ended. */
  signal(name: NodeJS.Signals): void;
  /** Sends SIGTERM and, after `graceMs`, SIGKILL to the whole group. Resolves when the child has ended. */
  stop(graceMs: number): Promise<ProcessEnd>;
}

/**
 * Starts a process. After `extraFds`, the child inherits one more descriptor: the read end of a pipe whose only writer
 * is this process. When this process ends in any way, the kernel kills the child's group (`armLifeline`). The child
 * needs no code for that. Rejects with Node's error (ENOENT, EACCES) if the command cannot be started.
 */
export async function spawnProcess(options: SpawnOptions): Promise<SpawnedProcess> {
  const lifeline = openPipe();
  let child: ChildProcess;
  try {
    child = spawn(options.command, options.args, {
      ...(options.cwd === null ? {} : { cwd: options.cwd }),
      env: options.env,
      detached: true,
      stdio: [options.takesInput === true ? "pipe" : "ignore", "pipe", "pipe", ...options.extraFds, lifeline.readFd],
    });
    // Called before anything else. If this process were killed before the lifeline is armed, the child would keep
    // running. Without a pid, there is no child.
    if (child.pid !== undefined) armLifeline(lifeline.readFd, child.pid);
    await once(child, "spawn");
  } catch (error) {
    closeSync(lifeline.writeFd);
    throw error;
  } finally {
    closeSync(lifeline.readFd);
  }
  return new RunningProcess(child, lifeline.writeFd, options);
}

class RunningProcess implements SpawnedProcess {
  readonly pid: number;
  readonly startTicks: number;
  readonly ended: Promise<ProcessEnd>;
  readonly input: Writable | null;
  readonly #child: ChildProcess;
  readonly #clock: Clock;
  readonly #outputs: readonly OutputLines[];

  constructor(child: ChildProcess, lifelineFd: number, options: SpawnOptions) {
    this.#child = child;
    this.#clock = options.clock;
    this.input = child.stdin;
    // Ignores EPIPE from a child that has ended. The caller observes the end through `ended`.
    child.stdin?.on("error", () => undefined);
    this.pid = child.pid!;
    // A child that has already ended is a zombie without a start time until `exit`. The value 0 is safe, because no
    // later run searches for a process that has ended.
    this.startTicks = readProcessStart(this.pid) ?? 0;
    const limits = options.outputLimits ?? defaultOutputLimits;
    const outputs = (["stdout", "stderr"] as const).map((stream) => {
      const lines = new OutputLines(options.clock, (line) => options.onLine(line, stream), limits);
      child[stream]!.on("data", (chunk: Buffer) => lines.push(chunk));
      child[stream]!.on("end", () => lines.end());
      return lines;
    });
    this.#outputs = outputs;
    this.ended = new Promise((resolve) => {
      let lastWords: Disposable | null = null;
      child.once("exit", () => {
        // Kills the other processes of the group, which closes the output pipes. A process that has left the group may
        // keep a pipe open.
        signalGroup(this.pid, 9);
        lastWords = options.clock.timer(remainingOutputMs, () => {
          child.stdout!.destroy();
          child.stderr!.destroy();
        });
      });
      child.once("close", (exitCode, signal) => {
        lastWords?.[Symbol.dispose]();
        closeSync(lifelineFd);
        // A destroyed stream emits no `end` event.
        for (const lines of outputs) lines.end();
        const end: ProcessEnd = { exitCode, signal };
        options.onExit(end);
        resolve(end);
      });
    });
  }

  outputTail(): readonly string[] {
    return this.#outputs.flatMap((lines) => lines.tail);
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  async stop(graceMs: number): Promise<ProcessEnd> {
    this.#child.kill("SIGTERM");
    using _force = this.#clock.timer(graceMs, () => signalGroup(this.pid, 9));
    return await this.ended;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) signalGroup(this.pid, 9);
    await this.ended;
  }
}
