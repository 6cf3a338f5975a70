import { closeSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type Clock, InferenceError, type Logger } from "@galatea/base";
import { openSocketPair } from "@galatea/base/system";
import { describeProcessEnd, spawnProcess } from "@galatea/base/processes";
import type { RunnerDescriptors } from "./runner-worker.ts";
import type { RunnerSockets } from "./serve-runner.ts";

export interface LaunchOptions {
  /** Name for log lines. */
  readonly name: string;
  /** Environment variables of the process. */
  readonly processEnv: Readonly<Record<string, string>>;
  readonly clock: Clock;
  readonly log: Logger;
}

/** A started runner process: the server's ends of its sockets, and how it ended. */
export interface LaunchedRunner extends RunnerSockets {
  readonly pid: number;
  /** Resolves with a description of how the process ended, after it was reaped: none of its threads accesses memory any more. */
  readonly ended: Promise<string>;
  /** Kills the process (SIGKILL). */
  kill(): void;
}

/** Without this setting, ONNX Runtime's official builds send telemetry and create files in the temporary directory. */
const telemetryOff = { ORT_DISABLE_TELEMETRY: "1" } as const;

/** Small, because the process creates little garbage. */
const semiSpaceMebibytes = 1;

export async function launchRunner({ name, processEnv, clock, log }: LaunchOptions): Promise<LaunchedRunner> {
  const control = openSocketPair();
  const descriptors = openSocketPair();
  const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
  const program = fileURLToPath(new URL(`./runner-worker.${extension}`, import.meta.url));
  try {
    const child = await spawnProcess({
      command: process.execPath,
      args: [`--max-semi-space-size=${semiSpaceMebibytes}`, program],
      env: { ...processEnv, ...telemetryOff },
      cwd: null,
      extraFds: [control.theirs, descriptors.theirs] satisfies RunnerDescriptors,
      onLine: (line) => log.warning(line, { runner: name }),
      onExit: () => {},
      clock,
    });
    return {
      controlFd: control.ours,
      descriptorFd: descriptors.ours,
      pid: child.pid,
      ended: child.ended.then(describeProcessEnd),
      kill: () => child.signal("SIGKILL"),
    };
  } catch (error) {
    for (const { ours } of [control, descriptors]) closeSync(ours);
    const message = `cannot start a process for ONNX Runtime: ${(error as Error).message}`;
    throw new InferenceError("UNAVAILABLE", message, { cause: error });
  } finally {
    for (const { theirs } of [control, descriptors]) closeSync(theirs);
  }
}
