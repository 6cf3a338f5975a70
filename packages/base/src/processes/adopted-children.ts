import type { ChildProcess } from "node:child_process";
import { subscribe } from "node:diagnostics_channel";
import { assert } from "../core/index.ts";
import { becomeSubreaper, findEnded, isChild, reapNow } from "../system/index.ts";
import { endOfWaitStatus, type ProcessEnd } from "./process-end.ts";
import { childrenOf, readProcessFile } from "./process-files.ts";

// Children that Node did not spawn: descendants whose parent has ended, so that the kernel reparented them to this process. The module has
// state because a process has one table of children and one SIGCHLD.

/** Children that Node itself waits for. */
const ofNode = new Set<ChildProcess>();
const watched = new Map<number, (end: ProcessEnd) => void>();
let isAdopting = false;
const familyMark = 1e12;
/** Family of a process that changed the mark that it inherited, as far as it may. */
export const unknownFamily = 0;

/** A child that nobody waits for. */
export interface Remains {
  /** The number that it inherited; null for a process that no worker started. */
  readonly family: number | null;
  readonly user: number;
}

subscribe("child_process", (message) => {
  const { process: child } = message as { readonly process: ChildProcess };
  ofNode.add(child);
  const onGone = () => {
    ofNode.delete(child);
    if (isAdopting) reap();
  };
  child.once("exit", onGone).once("error", onGone);
});

/** Makes this process the subreaper of its descendants and reaps them, so that no zombie stays. Does not keep the process alive. */
export function adoptOrphans(): void {
  if (isAdopting) return;
  isAdopting = true;
  becomeSubreaper();
  process.on("SIGCHLD", reap);
}

/** Calls `onEnd` once after an adopted child has ended and was reaped: its pid and its memory are free then. */
export function watchAdopted(pid: number, onEnd: (end: ProcessEnd) => void): void {
  assert(!watched.has(pid), `process ${pid} is already watched`);
  watched.set(pid, onEnd);
  // The child may have ended before it was watched; its SIGCHLD has already been handled.
  reapWatched(pid);
}

/** Returns whether `watchAdopted` may be called for it: a child that Node did not spawn and that is not watched. */
export function isAdoptable(pid: number): boolean {
  return pid > 1 && !isKnown(pid) && isChild(pid);
}

/**
 * Kills the unwatched adopted children whose family is gone, then the children that these leave in turn. Resolves when there are no more.
 */
export async function endRemains(isGone: (remains: Remains) => boolean): Promise<void> {
  for (let found = true; found;) {
    const ends: Promise<unknown>[] = [];
    for (const pid of await childrenOf(process.pid)) {
      if (isKnown(pid)) continue;
      const remains = await remainsOf(pid);
      if (remains === null || !isGone(remains)) continue;
      // Checked last, with nothing in between: a child keeps its pid until it is reaped.
      if (isKnown(pid) || !isChild(pid)) continue;
      if (!killed(pid)) continue;
      ends.push(new Promise((resolve) => watchAdopted(pid, resolve)));
    }
    await Promise.all(ends);
    found = ends.length > 0;
  }
}

/** Kills the process; returns false when it now belongs to another user, who alone may end it. */
function killed(pid: number): boolean {
  try {
    return process.kill(pid, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EPERM") return false;
    throw error;
  }
}

async function remainsOf(pid: number): Promise<Remains | null> {
  const [limits, status] = await Promise.all([readProcessFile(pid, "limits"), readProcessFile(pid, "status")]);
  const user = /^Uid:\t(\d+)/m.exec(status ?? "")?.[1];
  if (limits === null || user === undefined) return null;
  return { family: familyIn(limits), user: Number(user) };
}

/** Returns the family that a process's limits encode (the limit is 10^12 plus the number): see _FAMILY_MARK in zygote.py. */
export function familyIn(limits: string): number | null {
  const [, soft = "", hard = ""] = /^Max realtime timeout +(\S+) +(\S+)/m.exec(limits) ?? [];
  const family = Number(soft) - familyMark;
  if (family > 0 && family < 2 ** 32) return family;
  // A foreign limit on a resource that nobody else limits: the process lowered its mark.
  return /^\d+$/.test(hard) ? unknownFamily : null;
}

function isKnown(pid: number): boolean {
  return watched.has(pid) || isOfNode(pid);
}

function isOfNode(pid: number): boolean {
  return [...ofNode].some((child) => child.pid === pid);
}

function reap(): void {
  for (let pid = findEnded(); pid !== null; pid = findEnded()) {
    // Node reaps its own child first; the watched children after it follow then. Watched children need not wait for that.
    if (isOfNode(pid)) return watched.forEach((_, each) => reapWatched(each));
    const result = reapNow(pid);
    if (result.kind === "ended") onEnded(pid, result.status);
  }
}

function reapWatched(pid: number): void {
  const result = reapNow(pid);
  assert(result.kind !== "not a child", `process ${pid} is not a child of this one`);
  if (result.kind === "ended") onEnded(pid, result.status);
}

function onEnded(pid: number, status: number): void {
  const onEnd = watched.get(pid);
  watched.delete(pid);
  onEnd?.(endOfWaitStatus(status));
}
