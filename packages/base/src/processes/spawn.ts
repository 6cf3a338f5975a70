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
  /** null: this process's. */
  readonly cwd: string | null;
  /** Descriptors of this process that the child finds as 3, 4, ...; they stay open here and are the caller's to close. */
  readonly extraFds: readonly number[];
  /** Whether it has a standard input (`SpawnedProcess.input`); else that is empty. */
  readonly takesInput?: boolean;
  /** One line of what the child printed. */
  readonly onLine: (line: string, stream: "stdout" | "stderr") => void;
  /** Called once, after the last line. */
  readonly onExit: (end: ProcessEnd) => void;
  readonly clock: Clock;
  readonly outputLimits?: OutputLimits;
}

/** How long the last words of a child that has ended are waited for: a daemon of its may hold its output open for ever. */
const lastWordsMs = 1000;

/** A running child, leader of a process group of its own. Disposing it kills the group and waits for the end. */
export interface SpawnedProcess extends AsyncDisposable, ProcessIdentity {
  /** Settles when the process has ended and its output was read. */
  readonly ended: Promise<ProcessEnd>;
  /** Its standard input, null where it has none. What is written to a child that has ended is lost without an error. */
  readonly input: Writable | null;
  /** The last lines of its standard output, then of its standard error. */
  outputTail(): readonly string[];
  /** Signals the child alone; nothing happens when it has ended. */
  signal(name: NodeJS.Signals): void;
  /** SIGTERM, then after `graceMs` SIGKILL to the whole group. Resolves with how it ended. */
  stop(graceMs: number): Promise<ProcessEnd>;
}

/**
 * Starts a process. The child inherits one more descriptor, after `extraFds`: the read end of a pipe whose only writer is this process.
 * It is armed so that the kernel kills the child's group when this process ends in any way; the child needs no code for that.
 * Rejects with Node's error (ENOENT, EACCES) when the command cannot be started.
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
    // Before this process does anything else: what is killed before that leaves the child behind. Without a pid there is no child.
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
    // Its end is told by `ended`.
    child.stdin?.on("error", () => undefined);
    this.pid = child.pid!;
    // A child that has ended at once is a zombie until `exit`: it has no start time any more, and nobody will look for it.
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
        // What the child left running in its group goes with it, and lets go of the output pipes. What left the group may hold them on.
        signalGroup(this.pid, 9);
        lastWords = options.clock.timer(lastWordsMs, () => {
          child.stdout!.destroy();
          child.stderr!.destroy();
        });
      });
      child.once("close", (exitCode, signal) => {
        lastWords?.[Symbol.dispose]();
        closeSync(lifelineFd);
        // An output that was given up has no end of its own.
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
