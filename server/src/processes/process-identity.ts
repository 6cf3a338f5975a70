import { readFileSync } from "node:fs";
import { delay, type Clock } from "../base/index.ts";
import { signalGroup } from "../native/index.ts";

/** A process that a pid alone does not name: pids are used again, a pid with its start time is not. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Clock ticks since boot, field 22 of /proc/<pid>/stat. */
  readonly startTicks: number;
}

/** When a living process started; null when there is none of this pid (a zombie counts as none). */
export function readProcessStart(pid: number): number | null {
  let stat: string;
  try {
    stat = readFileSync(`/proc/${pid}/stat`, "latin1");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ESRCH") return null;
    throw error;
  }
  // The command in parentheses may hold anything, spaces and parentheses too: fields count from the last one.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return fields[0] === "Z" || fields[0] === "X" ? null : Number(fields[19]);
}

/** Kills the group of a process that an earlier life of this program left behind, and waits until it is gone. False when it was not there. */
export async function endLeftover(identity: ProcessIdentity, clock: Clock, signal: AbortSignal): Promise<boolean> {
  if (readProcessStart(identity.pid) !== identity.startTicks) return false;
  if (!signalGroup(identity.pid, 9)) process.kill(identity.pid, "SIGKILL");
  // Not our child: the kernel offers no wait for it that Node could join.
  while (readProcessStart(identity.pid) === identity.startTicks) await delay(clock, 5, signal);
  return true;
}
