import { readFileSync } from "node:fs";
import { delay, type Clock } from "../core/index.ts";
import { signalGroup } from "../system/index.ts";

/** A process, identified by its pid and start time, because the kernel reuses pids. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Start time in clock ticks since boot (field 22 of /proc/<pid>/stat). */
  readonly startTicks: number;
}

/** Returns the start time of a running process. Null if there is no process with this pid, or only a zombie. */
export function readProcessStart(pid: number): number | null {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ESRCH") return null;
    throw error;
  }
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
