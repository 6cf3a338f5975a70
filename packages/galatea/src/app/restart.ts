import { delay, systemClock } from "@galatea/base";
import { readProcessStart } from "@galatea/base/processes";
import type { RestartOptions } from "../options/index.ts";
import { restartSignal } from "./restart-signal.ts";
import { findRunningPlatform, PlatformChoice, type RunningPlatform } from "../data-directory/index.ts";

const pollMs = 20;

/**
 * Runs `galatea restart`, which makes the running platform replace itself with the installed program, with the same
 * arguments. Resolves when the new platform is ready. Instances keep running, with their loaded models.
 */
export async function restart(options: RestartOptions): Promise<number> {
  try {
    const before = findRunningPlatform(options, process.env);
    if (before === null) return refuse("no platform runs there; start one with `galatea up`");
    const startedNs = systemClock.monotonicNs();
    process.kill(before.process.pid, restartSignal);
    const after = await restarted(before, options);
    if (after === null) return refuse("the platform has exited; its log has the reason");
    const tookMs = (systemClock.monotonicNs() - startedNs) / 1e6;
    process.stdout.write(`Galatea is up again at port ${after.port} (${tookMs.toFixed(0)} ms)\n`);
    return 0;
  } catch (error) {
    if (!(error instanceof PlatformChoice)) throw error;
    return refuse(error.message);
  }
}

/** Resolves with the platform when it is ready again; null if its process has ended. */
async function restarted(before: RunningPlatform, options: RestartOptions): Promise<RunningPlatform | null> {
  const { pid, startTicks } = before.process;
  const location = { ...options, data: before.dataDirectory };
  while (readProcessStart(pid) === startTicks) {
    const found = findRunningPlatform(location, process.env);
    if (found !== null && found.openedMs !== before.openedMs) return found;
    await delay(systemClock, pollMs, new AbortController().signal);
  }
  return null;
}

function refuse(message: string): number {
  process.stderr.write(`galatea restart: ${message}\n`);
  return 1;
}
