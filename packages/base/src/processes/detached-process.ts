import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, openSync, rmSync } from "node:fs";
import { readdir, readlink, realpath } from "node:fs/promises";
import { Socket } from "node:net";
import { basename, dirname, join, relative } from "node:path";
import { delay, type Clock } from "../core/index.ts";
import { makeNamedPipe, signalGroup } from "../system/index.ts";
import { isAdoptable, watchAdoptedChild } from "./adopted-children.ts";
import { OutputLines } from "./output-lines.ts";
import type { ProcessEnd } from "./process-end.ts";
import { readProcessStart, type ProcessIdentity } from "./process-identity.ts";

/** The directory of a detached process's output pipes, and the handler of the output's lines. */
interface DetachedOutput {
  /**
   * An existing directory that no other process uses. It receives the named pipes `stdout` and `stderr`, to which the
   * process writes.
   */
  readonly outputDirectory: string;
  readonly onLine: (line: string) => void;
  readonly clock: Clock;
}

export interface DetachedProcessOptions extends DetachedOutput {
  readonly command: string;
  readonly args: readonly string[];
  /** The complete environment of the process. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

/**
 * The end of a process. Both fields are null for an adopted process whose parent is another process, because the kernel
 * reports an exit status only to the parent.
 */
export type DetachedEnd = ProcessEnd | { readonly exitCode: null; readonly signal: null };

/**
 * A process that continues to run after the process that started it has ended, even after SIGKILL. It leads a process
 * group of its own.
 */
export interface DetachedProcess extends ProcessIdentity {
  /** Resolves when the process has ended and its output has been read. Never rejects; stays pending after `release`. */
  readonly ended: Promise<DetachedEnd>;
  /** Returns the last lines of stdout, followed by the last lines of stderr. */
  outputTail(): readonly string[];
  /** Sends SIGTERM to the process and, after `graceMs`, SIGKILL to its group. Resolves when the process has ended. */
  stop(graceMs: number): Promise<void>;
  /**
   * Stops watching and reading, and leaves the process running. Each pipe buffers 64 KiB of output. After that, writes
   * of the process block until `adoptDetached` reads the pipes.
   */
  release(): void;
}

const streams = ["stdout", "stderr"] as const;
/**
 * Time limit for reading the remaining output of a process that has ended. Without this limit, a daemon that has left
 * the process group and keeps a pipe open would keep `ended` pending.
 */
const remainingOutputMs = 1000;
/**
 * Poll interval for an adopted process that is not a child of this one. The kernel reports an exit only to the parent.
 */
const endPollMs = 200;

/**
 * Starts a process that continues to run when this one ends. Rejects with Node's error (such as ENOENT or EACCES) if
 * the command cannot be started.
 */
export async function startDetached(options: DetachedProcessOptions): Promise<DetachedProcess> {
  const { command, args, env, cwd, outputDirectory } = options;
  const paths = streams.map((stream) => join(outputDirectory, stream));
  // O_RDWR makes the process also a reader of its own pipes. Without a reader, its writes would fail with EPIPE after
  // this process has ended.
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
    // A child that has already ended is a zombie without a start time. The value 0 is safe, because a process that has
    // ended is never adopted.
    const identity = { pid: child.pid!, startTicks: readProcessStart(child.pid!) ?? 0 };
    return new RunningProcess(identity, { outputs, ended: () => ended, clock: options.clock });
  } catch (error) {
    for (const output of outputs) output.close();
    throw error;
  } finally {
    for (const fd of fds) closeSync(fd);
  }
}

/** Adopts a process that a previous run of this program started. Returns null if that process has ended. */
export function adoptDetached(identity: ProcessIdentity, output: DetachedOutput): DetachedProcess | null {
  const { clock } = output;
  if (!isRunning(identity)) return null;
  const outputs = openOutputs(output);
  return new RunningProcess(identity, { outputs, ended: (released) => endOfAdopted(identity, clock, released), clock });
}

/**
 * Returns the processes that `startDetached` started with an output directory in `directory`, and those of their
 * children that write to the same pipe. They are found through the kernel's list of open files. A process is therefore
 * found even if its starter was killed before it could record the process.
 */
export async function findDetached(
  directory: string,
): Promise<readonly (ProcessIdentity & { readonly outputDirectory: string })[]> {
  const below = `${await realpath(directory)}/`;
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const found = await Promise.all(
    pids.map(async (pid) => {
      // Fails for a process that has ended, and for a process of another user.
      const stdout = await readlink(`/proc/${pid}/fd/1`).catch(() => "");
      const startTicks = readProcessStart(Number(pid));
      if (startTicks === null || !stdout.startsWith(below) || basename(stdout) !== streams[0]) return [];
      return [{ pid: Number(pid), startTicks, outputDirectory: join(directory, relative(below, dirname(stdout))) }];
    }),
  );
  return found.flat();
}

const isRunning = ({ pid, startTicks }: ProcessIdentity) => readProcessStart(pid) === startTicks;

function endOfChild(child: ChildProcess): Promise<DetachedEnd> {
  return new Promise((resolve) => {
    child.once("exit", (exitCode, signal) => resolve({ exitCode, signal }));
    // The start failed: `once(child, "spawn")` rejects with the error.
    child.once("error", () => resolve({ exitCode: null, signal: null }));
  });
}

async function endOfAdopted(identity: ProcessIdentity, clock: Clock, released: AbortSignal): Promise<DetachedEnd> {
  // The children of a process remain its children after `exec`, so their exit status is still available.
  if (isAdoptable(identity.pid)) return await new Promise((resolve) => watchAdoptedChild(identity.pid, resolve));
  while (isRunning(identity)) await delay(clock, endPollMs, released);
  return { exitCode: null, signal: null };
}

interface Output {
  readonly lines: OutputLines;
  /** Resolves when no writer has the pipe open any more, or after `close`. */
  readonly closed: Promise<unknown>;
  close(): void;
}

function openOutputs({ outputDirectory, onLine, clock }: DetachedOutput): readonly Output[] {
  return streams.map((stream) => {
    const lines = new OutputLines(clock, onLine);
    const fd = openSync(join(outputDirectory, stream), constants.O_RDONLY | constants.O_NONBLOCK);
    const socket = new Socket({ fd, readable: true, writable: false });
    socket.on("data", (chunk: Buffer) => lines.push(chunk));
    // Treats a read error as the end of the output.
    socket.on("error", () => socket.destroy());
    const closed = once(socket, "close").then(() => lines.end());
    return { lines, closed, close: () => void socket.destroy() };
  });
}

class RunningProcess implements DetachedProcess {
  readonly pid: number;
  readonly startTicks: number;
  readonly ended: Promise<DetachedEnd>;
  readonly #outputs: readonly Output[];
  readonly #clock: Clock;
  readonly #released = new AbortController();
  #isEnded = false;

  constructor(
    { pid, startTicks }: ProcessIdentity,
    dependencies: {
      readonly outputs: readonly Output[];
      readonly ended: (released: AbortSignal) => Promise<DetachedEnd>;
      readonly clock: Clock;
    },
  ) {
    this.pid = pid;
    this.startTicks = startTicks;
    this.#outputs = dependencies.outputs;
    this.#clock = dependencies.clock;
    this.ended = this.#end(dependencies.ended(this.#released.signal));
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

  async #end(ended: Promise<DetachedEnd>): Promise<DetachedEnd> {
    const never = new Promise<never>(() => {});
    const end = await ended.catch(() => never);
    if (this.#released.signal.aborted) return await never;
    this.#isEnded = true;
    // Kills the other processes of the group, which still have the pipes open. A process that has left the group may
    // keep a pipe open.
    signalGroup(this.pid, 9);
    {
      using _lastOutput = this.#clock.timer(remainingOutputMs, () => this.#outputs.forEach((output) => output.close()));
      await Promise.all(this.#outputs.map(({ closed }) => closed));
    }
    return end;
  }
}
