import { spawn, type ChildProcess } from "node:child_process";
import { randomInt } from "node:crypto";
import { connect, createServer } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

export interface ServerOptions {
  readonly repositories: readonly string[];
  /** Command-line flags, as tritonserver spells them. */
  readonly flags?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

export interface RunningServer {
  /** The server: galatea, or the real tritonserver as the oracle. */
  readonly kind: "oracle" | "galatea";
  readonly pid: number;
  readonly httpPort: number;
  readonly grpcPort: number;
  readonly metricsPort: number;
  readonly sagemakerPort: number;
  /** The last mebibyte of both output streams. */
  log(): string;
  /** Resolves when the process has ended, for any reason. */
  readonly ended: Promise<ServerEnd>;
  /**
   * Sends SIGTERM, and after 30 s SIGKILL to the whole process group. Resolves with the exit code when all processes
   * have ended.
   */
  stop(): Promise<number | null>;
  /** Sends SIGKILL to the whole process group, for a server that hangs. Resolves when all processes have ended. */
  kill(): Promise<void>;
}

export interface ServerEnd {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
}

/** The error for a server that ended before it listened. */
export class ServerExit extends Error {
  readonly exitCode: number | null;
  readonly log: string;

  constructor(command: string, exitCode: number | null, log: string) {
    super(`${command} ended with ${exitCode} before it was ready:\n${log.slice(-6000)}`);
    this.name = "ServerExit";
    this.exitCode = exitCode;
    this.log = log;
  }
}

export interface LaunchOptions {
  readonly kind: "oracle" | "galatea";
  readonly command: string;
  readonly arguments: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly ports: {
    readonly httpPort: number;
    readonly grpcPort: number;
    readonly metricsPort: number;
    readonly sagemakerPort: number;
  };
  /** Lines that must have appeared in the output: those of the listeners. */
  readonly readyTexts: readonly string[];
  /** Ports that accept connections only some time after their line. */
  readonly latePorts?: readonly number[];
  readonly readyTimeoutMs: number;
  readonly signal: AbortSignal | undefined;
  /** Called after the end of the process. */
  readonly cleanUp: () => Promise<void>;
}

const logBytesMax = 1 << 20;
const stopTimeoutMs = 30_000;

/** Starts a server in its own process group and waits for its start lines. */
export async function launch(options: LaunchOptions): Promise<RunningServer> {
  const child = spawn(options.command, options.arguments, {
    stdio: ["ignore", "pipe", "pipe"],
    env: options.env,
    detached: true,
  });
  const killGroup = () => signalGroup(child, "SIGKILL");
  process.once("exit", killGroup);
  let log = "";
  const ended = new Promise<ServerEnd>((resolve, reject) => {
    child.on("error", reject).on("close", (exitCode, signal) => resolve({ exitCode, signal }));
  }).finally(() => process.removeListener("exit", killGroup));
  const ready = new Promise<"ready">((resolve) => {
    const note = (text: string) => {
      log = (log + text).slice(-logBytesMax);
      if (options.readyTexts.every((expected) => log.includes(expected))) resolve("ready");
    };
    child.stdout.setEncoding("utf8").on("data", note);
    child.stderr.setEncoding("utf8").on("data", note);
  });
  const stop = async () => {
    child.kill("SIGTERM");
    const timer = setTimeout(killGroup, stopTimeoutMs);
    const { exitCode } = await ended;
    clearTimeout(timer);
    killGroup();
    await options.cleanUp();
    return exitCode;
  };
  const kill = async () => {
    killGroup();
    await ended;
    await options.cleanUp();
  };
  const deadline = new AbortController();
  const timer = setTimeout(() => deadline.abort(new Error("not ready in time")), options.readyTimeoutMs);
  const input = options.signal ? AbortSignal.any([options.signal, deadline.signal]) : deadline.signal;
  const open = ready.then(async (is) => {
    for (const port of options.latePorts ?? []) await accepting(port, input);
    return is;
  });
  const outcome = await Promise.race([open, ended, aborted(input)]);
  clearTimeout(timer);
  if (outcome === "ready")
    return { kind: options.kind, pid: child.pid ?? 0, ...options.ports, log: () => log, ended, stop, kill };
  await kill();
  throw new ServerExit(options.command, outcome === "aborted" ? null : outcome.exitCode, log);
}

const connectEveryMs = 20;

/** Resolves when the port accepts a connection, or when the signal aborts. */
async function accepting(port: number, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && !(await isAccepted(port))) await delay(connectEveryMs);
}

function isAccepted(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("error", () => resolve(false));
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
  });
}

function aborted(signal: AbortSignal): Promise<"aborted"> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve("aborted");
    signal.addEventListener("abort", () => resolve("aborted"), { once: true });
  });
}

function signalGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    process.kill(-child.pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

export interface RunResult {
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs a command that is expected to end by itself: usage errors and failed starts. After the time-out it is killed,
 * and exitCode is null.
 */
export async function runToExit(
  command: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
  timeoutMs: number,
): Promise<RunResult> {
  const child = spawn(command, args, { stdio: ["ignore", "pipe", "pipe"], env, detached: true });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => (stdout = (stdout + text).slice(-logBytesMax)));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (stderr = (stderr + text).slice(-logBytesMax)));
  const timer = setTimeout(() => signalGroup(child, "SIGKILL"), timeoutMs);
  const exitCode = await new Promise<number | null>((resolve, reject) => {
    child.on("error", reject).on("close", resolve);
  });
  clearTimeout(timer);
  signalGroup(child, "SIGKILL");
  return { exitCode, stdout, stderr };
}

/**
 * A range below the kernel's ports for outgoing connections, which could take a port between the check and the start.
 */
const portRange = { from: 10_240, to: 32_000 };
const portTriesMax = 1000;

/** Returns ports that are free now, for servers that do not report the port that they got for 0. */
export async function freePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  for (let tries = 0; ports.size < count; tries++) {
    if (tries === portTriesMax) throw new Error(`no ${count} free ports between ${portRange.from} and ${portRange.to}`);
    const port = randomInt(portRange.from, portRange.to);
    if (await isFree(port)) ports.add(port);
  }
  return [...ports];
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
