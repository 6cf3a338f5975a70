import { delay, type Clock } from "../core/index.ts";
import { pageBytes, signalGroup } from "../system/index.ts";
import { readProcessFileSync } from "./process-files.ts";

/** A process, identified by its pid and start time, because the kernel reuses pids. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Start time in clock ticks since boot (field 22 of /proc/<pid>/stat). */
  readonly startTicks: number;
}

/** Returns the start time of a running process. Null if there is no process with this pid, or only a zombie. */
export function readProcessStart(pid: number): number | null {
  const stat = readProcessFileSync(pid, "stat");
  if (stat === null) return null;
  const { isZombie, startTicks } = parseProcessStat(stat);
  return isZombie ? null : startTicks;
}

/** Fields of /proc/<pid>/stat. */
export interface ProcessStat {
  /** True if the process has ended and was not yet reaped. */
  readonly isZombie: boolean;
  /** CPU time of the process and of its reaped children. */
  readonly cpuTicks: number;
  readonly startTicks: number;
  /** Resident memory, pages that are shared with other processes included. */
  readonly residentBytes: number;
}

export function parseProcessStat(text: string): ProcessStat {
  // The command in parentheses may contain spaces and parentheses, so the fields are counted from the last parenthesis.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const [state = ""] = fields;
  const cpuTicks = fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0);
  return {
    isZombie: state === "Z" || state === "X",
    cpuTicks,
    startTicks: Number(fields[19]),
    residentBytes: Number(fields[21]) * pageBytes,
  };
}

/**
 * Kills the process group that a previous run of this program left running, and waits until the process is gone.
 * Returns false if it no longer exists.
 */
export async function endLeftover(identity: ProcessIdentity, clock: Clock, signal: AbortSignal): Promise<boolean> {
  if (readProcessStart(identity.pid) !== identity.startTicks) return false;
  if (!signalGroup(identity.pid, 9)) process.kill(identity.pid, "SIGKILL");
  // The process is not a child of this one, and Node offers no way to wait for such a process, so this polls.
  while (readProcessStart(identity.pid) === identity.startTicks) await delay(clock, 5, signal);
  return true;
}
