import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, openSync, rmSync } from "node:fs";
import { Socket } from "node:net";
import { join } from "node:path";
import { delay, type Clock } from "../core/index.ts";
import { makeNamedPipe, signalGroup } from "../system/index.ts";
import { isAdoptable, watchAdopted } from "./adopted-children.ts";
import { OutputLines } from "./output-lines.ts";
import type { ProcessEnd } from "./process-end.ts";
import { readProcessStart, type ProcessIdentity } from "./process-identity.ts";

/** What a process does with what another one that outlives it prints. */
interface LastingOutput {
  /** Exists, and belongs to the process as long as it runs: it prints to the named pipes `stdout` and `stderr` in it. */
  readonly outputDirectory: string;
  readonly onLine: (line: string) => void;
  readonly clock: Clock;
}

export interface LastingOptions extends LastingOutput {
  readonly command: string;
  readonly args: readonly string[];
  /** The whole environment of the process. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

/** How a process ended; both are null where another process started it, which alone is told. */
export type LastingEnd = ProcessEnd | { readonly exitCode: null; readonly signal: null };

/** A process that goes on when the one that started it has ended, however that ended; leader of a process group of its own. */
export interface LastingProcess extends ProcessIdentity {
  /** Settles when the process has ended and its output was read; never rejects, and never settles after `release`. */
  readonly ended: Promise<LastingEnd>;
  /** The last lines of its standard output, then of its standard error. */
  outputTail(): readonly string[];
  /** SIGTERM, then after `graceMs` SIGKILL to the whole group. Resolves when it has ended. */
  stop(graceMs: number): Promise<void>;
  /** Lets it go on alone. What it prints waits in its pipes, up to what these hold, until somebody adopts it. */
  release(): void;
}

const streams = ["stdout", "stderr"] as const;
/** How long the last words of a process that has ended are waited for: a daemon of its may hold its output open for ever. */
const lastWordsMs = 1000;
/** Between looks at a process that is no child of this one: the kernel tells its end to nobody else. */
const endLookMs = 200;

/** Starts a process that outlives this one. Rejects with Node's error (ENOENT, EACCES) when the command cannot be started. */
export async function startLasting(options: LastingOptions): Promise<LastingProcess> {
  const { command, args, env, cwd, outputDirectory } = options;
  const paths = streams.map((stream) => join(outputDirectory, stream));
  // The process reads what it writes, as far as the kernel knows: a write is no error (EPIPE) while nobody else reads.
  const fds = paths.map((path) => {
    rmSync(path, { force: true });
    makeNamedPipe(path);
    return openSync(path, constants.O_RDWR);
  });
  const outputs = openOutputs(options);
  try {
    const child = spawn(command, args, { cwd, env: { ...env }, detached: true, stdio: ["ignore", ...fds] });
    const ended = endOfChild(child);
    await once(child, "spawn");
    // A child that has ended at once is a zombie until Node waits for it: it has no start time any more, and nobody will look for it.
    const identity = { pid: child.pid!, startTicks: readProcessStart(child.pid!) ?? 0 };
    return new Lasting(identity, { outputs, ended: () => ended, clock: options.clock });
  } catch (error) {
    for (const output of outputs) output.close();
    throw error;
  } finally {
    for (const fd of fds) closeSync(fd);
  }
}

/** Takes over a process that an earlier life of this program started; null when it has ended. */
export function adoptLasting(identity: ProcessIdentity, output: LastingOutput): LastingProcess | null {
  const { clock } = output;
  if (!isRunning(identity)) return null;
  const outputs = openOutputs(output);
  return new Lasting(identity, { outputs, ended: (released) => endOfAdopted(identity, clock, released), clock });
}

const isRunning = ({ pid, startTicks }: ProcessIdentity) => readProcessStart(pid) === startTicks;

function endOfChild(child: ChildProcess): Promise<LastingEnd> {
  return new Promise((resolve) => {
    child.once("exit", (exitCode, signal) => resolve({ exitCode, signal }));
    // Its start failed: whoever waits for the start is told.
    child.once("error", () => resolve({ exitCode: null, signal: null }));
  });
}

async function endOfAdopted(identity: ProcessIdentity, clock: Clock, released: AbortSignal): Promise<LastingEnd> {
  // After an exec of this program its children are still its children.
  if (isAdoptable(identity.pid)) return await new Promise((resolve) => watchAdopted(identity.pid, resolve));
  while (isRunning(identity)) await delay(clock, endLookMs, released);
  return { exitCode: null, signal: null };
}

interface Output {
  readonly lines: OutputLines;
  /** Resolves when nobody holds the pipe any more. */
  readonly closed: Promise<unknown>;
  close(): void;
}

function openOutputs({ outputDirectory, onLine, clock }: LastingOutput): readonly Output[] {
  return streams.map((stream) => {
    const lines = new OutputLines(clock, onLine);
    const fd = openSync(join(outputDirectory, stream), constants.O_RDONLY | constants.O_NONBLOCK);
    const socket = new Socket({ fd, readable: true, writable: false });
    socket.on("data", (chunk: Buffer) => lines.push(chunk));
    // A pipe that cannot be read is as good as one that is closed.
    socket.on("error", () => socket.destroy());
    const closed = once(socket, "close").then(() => lines.end());
    return { lines, closed, close: () => void socket.destroy() };
  });
}

class Lasting implements LastingProcess {
  readonly pid: number;
  readonly startTicks: number;
  readonly ended: Promise<LastingEnd>;
  readonly #outputs: readonly Output[];
  readonly #clock: Clock;
  readonly #released = new AbortController();
  #isEnded = false;

  constructor(
    { pid, startTicks }: ProcessIdentity,
    parts: {
      readonly outputs: readonly Output[];
      readonly ended: (released: AbortSignal) => Promise<LastingEnd>;
      readonly clock: Clock;
    },
  ) {
    this.pid = pid;
    this.startTicks = startTicks;
    this.#outputs = parts.outputs;
    this.#clock = parts.clock;
    this.ended = this.#end(parts.ended(this.#released.signal));
  }

  outputTail(): readonly string[] {
    return this.#outputs.flatMap(({ lines }) => lines.tail);
  }

  async stop(graceMs: number): Promise<void> {
    if (!this.#isEnded && isRunning(this)) process.kill(this.pid, "SIGTERM");
    using _force = this.#clock.timer(graceMs, () => {
      if (!this.#isEnded) signalGroup(this.pid, 9);
    });
    await this.ended;
  }

  release(): void {
    this.#released.abort();
    for (const output of this.#outputs) output.close();
  }

  async #end(ended: Promise<LastingEnd>): Promise<LastingEnd> {
    const never = new Promise<never>(() => {});
    const end = await ended.catch(() => never);
    if (this.#released.signal.aborted) return await never;
    this.#isEnded = true;
    // What it left running in its group goes with it, and lets go of the pipes. What left the group may hold them on.
    signalGroup(this.pid, 9);
    {
      using _lastWords = this.#clock.timer(lastWordsMs, () => this.#outputs.forEach((output) => output.close()));
      await Promise.all(this.#outputs.map(({ closed }) => closed));
    }
    return end;
  }
}
