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
  /** The whole environment of the child. */
  readonly env: Readonly<Record<string, string>>;
  /** Null: the directory of this process. */
  readonly cwd: string | null;
  /** Descriptors of this process that the child inherits as 3, 4, ... They stay open here; the caller closes them. */
  readonly extraFds: readonly number[];
  /** True if the child gets a standard input (`SpawnedProcess.input`); otherwise its input is empty. */
  readonly takesInput?: boolean;
  /** Called for each line that the child printed. */
  readonly onLine: (line: string, stream: "stdout" | "stderr") => void;
  /** Called once, after the last line. */
  readonly onExit: (end: ProcessEnd) => void;
  readonly clock: Clock;
  readonly outputLimits?: OutputLimits;
}

/**
 * Time limit for reading the remaining output of a child that has ended. Without this limit, a daemon that the child left behind could keep
 * the pipe open for ever.
 */
const remainingOutputMs = 1000;

/** A running child, leader of its own process group. Disposing it kills the group and waits for the end. */
export interface SpawnedProcess extends AsyncDisposable, ProcessIdentity {
  /** Resolves when the process has ended and its output was read. */
  readonly ended: Promise<ProcessEnd>;
  /** The child's standard input; null without `takesInput`. Writes to a child that has ended are lost without an error. */
  readonly input: Writable | null;
  /** Returns the last lines of the child's standard output, then of its standard error. */
  outputTail(): readonly string[];
  /** Signals the child alone; does nothing when it has ended. */
  signal(name: NodeJS.Signals): void;
  /** Sends SIGTERM and, after `graceMs`, SIGKILL to the whole group. Resolves with its end. */
  stop(graceMs: number): Promise<ProcessEnd>;
}

/**
 * Starts a process. The child inherits one more descriptor, after `extraFds`: the read end of a pipe whose only writer is this process. The
 * kernel kills the child's group when this process ends in any way (`armLifeline`); the child needs no code for that. Rejects with Node's
 * error (ENOENT, EACCES) when the command cannot be started.
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
    // Armed before anything else: if this process were killed earlier, the child would stay behind. Without a pid there is no child.
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
    // Ignores EPIPE from a child that has ended: the caller observes the end through `ended`.
    child.stdin?.on("error", () => undefined);
    this.pid = child.pid!;
    // A child that ended at once is a zombie until `exit` and has no start time; no later run looks for it.
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
        // Kills the rest of the group, which closes the output pipes. Processes that left the group may keep them open.
        signalGroup(this.pid, 9);
        lastWords = options.clock.timer(remainingOutputMs, () => {
          child.stdout!.destroy();
          child.stderr!.destroy();
        });
      });
      child.once("close", (exitCode, signal) => {
        lastWords?.[Symbol.dispose]();
        closeSync(lifelineFd);
        // A destroyed output has no end event.
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
