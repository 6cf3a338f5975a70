import type { ChildProcess } from "node:child_process";
import { subscribe } from "node:diagnostics_channel";
import { assert } from "../core/index.ts";
import { becomeSubreaper, findEndedChild, isChild, reapChild } from "../system/index.ts";
import { parseWaitStatus, type ProcessEnd } from "./process-end.ts";
import { childrenOf, readProcessFile } from "./process-files.ts";

// Adopted children are descendants whose parent has ended, so that the kernel made this process their parent. Node did
// not spawn them. This module has global state because a process has only one table of children and one SIGCHLD
// handler.

/** Children that Node spawned and reaps itself. */
const nodeChildren = new Set<ChildProcess>();
const watched = new Map<number, (end: ProcessEnd) => void>();
let isAdopting = false;
const familyMark = 1e12;
/**
 * The worker family of a process that changed its inherited family mark. A process can lower this limit, but cannot
 * raise or remove it.
 */
export const unknownFamily = 0;

/** An adopted child for which `watchAdoptedChild` was not called. */
export interface OrphanedProcess {
  /**
   * Number of the worker family, which contains the descendants of one Python worker (`parseFamilyMark`). Null for a
   * process that no worker started.
   */
  readonly workerFamily: number | null;
  readonly user: number;
}

subscribe("child_process", (message) => {
  const { process: child } = message as { readonly process: ChildProcess };
  nodeChildren.add(child);
  const onGone = () => {
    nodeChildren.delete(child);
    if (isAdopting) reap();
  };
  child.once("exit", onGone).once("error", onGone);
});

/**
 * Makes this process the subreaper of its descendants and reaps them, so that no zombies remain. Does not keep the
 * process alive.
 */
export function adoptOrphans(): void {
  if (isAdopting) return;
  isAdopting = true;
  becomeSubreaper();
  process.on("SIGCHLD", reap);
}

/** Calls `onEnd` once after an adopted child has ended and was reaped. Its pid and its memory are free by then. */
export function watchAdoptedChild(pid: number, onEnd: (end: ProcessEnd) => void): void {
  assert(!watched.has(pid), `process ${pid} is already watched`);
  watched.set(pid, onEnd);
  // The child may have ended before this call. Its SIGCHLD would then already have been handled.
  reapWatched(pid);
}

/**
 * Returns whether `watchAdoptedChild` may be called for the process. It may be called for a child that Node did not
 * spawn and that is not yet watched.
 */
export function isAdoptable(pid: number): boolean {
  return pid > 1 && !isKnown(pid) && isChild(pid);
}

/**
 * Kills the unwatched adopted children for which `isGone` returns true. Their own children are then adopted and checked
 * in the same way. Resolves when none is left to kill.
 */
export async function killOrphans(isGone: (orphan: OrphanedProcess) => boolean): Promise<void> {
  for (let found = true; found;) {
    const ends: Promise<unknown>[] = [];
    for (const pid of childrenOf(process.pid)) {
      if (isKnown(pid)) continue;
      const orphan = await orphanOf(pid);
      if (orphan === null || !isGone(orphan)) continue;
      // Checked again directly before the kill, because the awaits above may have reaped the child and freed its pid.
      if (isKnown(pid) || !isChild(pid)) continue;
      if (!kill(pid)) continue;
      ends.push(new Promise((resolve) => watchAdoptedChild(pid, resolve)));
    }
    await Promise.all(ends);
    found = ends.length > 0;
  }
}

/** Kills the process. Returns false if it belongs to another user, whose processes this process may not kill. */
function kill(pid: number): boolean {
  try {
    return process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EPERM") return false;
    throw error;
  }
}

async function orphanOf(pid: number): Promise<OrphanedProcess | null> {
  const [limits, status] = await Promise.all([readProcessFile(pid, "limits"), readProcessFile(pid, "status")]);
  const user = /^Uid:\t(\d+)/m.exec(status ?? "")?.[1];
  if (limits === null || user === undefined) return null;
  return { workerFamily: parseFamilyMark(limits), user: Number(user) };
}

/**
 * Returns the worker family of a process from its /proc/<pid>/limits. The zygote encodes the family in the limit "Max
 * realtime timeout", which all descendants inherit. The limit is 10^12 plus the family's number (`_FAMILY_MARK` in
 * zygote.py).
 */
export function parseFamilyMark(limits: string): number | null {
  const [, soft = "", hard = ""] = /^Max realtime timeout +(\S+) +(\S+)/m.exec(limits) ?? [];
  const family = Number(soft) - familyMark;
  if (family > 0 && family < 2 ** 32) return family;
  // No other program sets this limit, so the process has lowered its mark.
  return /^\d+$/.test(hard) ? unknownFamily : null;
}

function isKnown(pid: number): boolean {
  return watched.has(pid) || isNodeChild(pid);
}

function isNodeChild(pid: number): boolean {
  return [...nodeChildren].some((child) => child.pid === pid);
}

function reap(): void {
  for (let pid = findEndedChild(); pid !== null; pid = findEndedChild()) {
    // Node must reap its own child first. The child's `exit` event then calls `reap` again for the other children.
    // Watched children can be reaped now.
    if (isNodeChild(pid)) return watched.forEach((_, each) => reapWatched(each));
    const result = reapChild(pid);
    if (result.kind === "ended") onEnded(pid, result.status);
  }
}

function reapWatched(pid: number): void {
  const result = reapChild(pid);
  assert(result.kind !== "not a child", `process ${pid} is not a child of this one`);
  if (result.kind === "ended") onEnded(pid, result.status);
}

function onEnded(pid: number, status: number): void {
  const onEnd = watched.get(pid);
  watched.delete(pid);
  onEnd?.(parseWaitStatus(status));
}
