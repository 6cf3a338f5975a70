import { closeSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type Clock, InferenceError, type Logger } from "@galatea/base";
import { openSocketPair } from "@galatea/base/system";
import { describeEnd, spawnProcess } from "@galatea/base/processes";
import type { RunnerDescriptors } from "./runner-worker.ts";
import type { RunnerSockets } from "./serve-runner.ts";

export interface LaunchOptions {
  /** In log lines. */
  readonly name: string;
  /** null: in this process. */
  readonly processEnv: Readonly<Record<string, string>> | null;
  readonly clock: Clock;
  readonly log: Logger;
}

/** A runner that has been started: our ends of its sockets, and its life. */
export interface LaunchedRunner extends AsyncDisposable, RunnerSockets {
  /** null in this process. */
  readonly pid: number | null;
  /** Resolves with how it ended, when its process has been reaped: nobody of it reads or writes any memory then. */
  readonly ended: Promise<string>;
  /** Ends it at once; nothing happens in this process. */
  kill(): void;
}

export async function launchRunner(options: LaunchOptions): Promise<LaunchedRunner> {
  const control = openSocketPair();
  const descriptors = openSocketPair();
  const ours = { controlFd: control.ours, descriptorFd: descriptors.ours };
  const theirs = { controlFd: control.theirs, descriptorFd: descriptors.theirs };
  try {
    return options.processEnv === null
      ? await launchHere(ours, theirs)
      : await launchProcess(ours, theirs, { ...options, processEnv: options.processEnv });
  } catch (error) {
    for (const fd of Object.values(ours)) closeSync(fd);
    throw error;
  }
}

async function launchHere(ours: RunnerSockets, theirs: RunnerSockets): Promise<LaunchedRunner> {
  const { serveRunner } = await import("./serve-runner.ts");
  const served = serveRunner(theirs);
  return {
    ...ours,
    pid: null,
    ended: served.then(() => "it was closed"),
    kill: () => {},
    [Symbol.asyncDispose]: () => served,
  };
}

/** ONNX Runtime's official builds report to their makers what they run and leave files in the temporary directory, unless told. */
export const quietLibrary = { ORT_DISABLE_TELEMETRY: "1" } as const;

/** Its collector has nothing to do but the garbage of a request to load, and of each run. */
const semiSpaceMebibytes = 1;

async function launchProcess(
  ours: RunnerSockets,
  theirs: RunnerSockets,
  { name, processEnv, clock, log }: LaunchOptions & { processEnv: Readonly<Record<string, string>> },
): Promise<LaunchedRunner> {
  const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
  const program = fileURLToPath(new URL(`./runner-worker.${extension}`, import.meta.url));
  try {
    const child = await spawnProcess({
      command: process.execPath,
      args: [`--max-semi-space-size=${semiSpaceMebibytes}`, program],
      env: { ...processEnv, ...quietLibrary },
      cwd: null,
      extraFds: [theirs.controlFd, theirs.descriptorFd] satisfies RunnerDescriptors,
      onLine: (line) => log.warning(line, { runner: name }),
      onExit: () => {},
      clock,
    });
    return {
      ...ours,
      pid: child.pid,
      ended: child.ended.then(describeEnd),
      kill: () => child.signal("SIGKILL"),
      [Symbol.asyncDispose]: () => child[Symbol.asyncDispose](),
    };
  } catch (error) {
    const message = `cannot start a process for ONNX Runtime: ${(error as Error).message}`;
    throw new InferenceError("UNAVAILABLE", message, { cause: error });
  } finally {
    for (const fd of Object.values(theirs)) closeSync(fd);
  }
}
