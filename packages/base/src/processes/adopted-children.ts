import type { ChildProcess } from "node:child_process";
import { subscribe } from "node:diagnostics_channel";
import { assert } from "../core/index.ts";
import { becomeSubreaper, findEnded, isChild, reapNow } from "../system/index.ts";
import { endOfWaitStatus, type ProcessEnd } from "./process-end.ts";
import { childrenOf, readProcessFile } from "./process-files.ts";

/*
 * Children that Node did not spawn: descendants whose parent has ended, so that the kernel gave them to this process. It has one
 * table of children and one signal for their ends, so what is known of them stands here once, too.
 */

/** Node waits for these itself. */
const ofNode = new Set<ChildProcess>();
const watched = new Map<number, (end: ProcessEnd) => void>();
let isAdopting = false;
const familyMark = 1e12;
/** Of a process that changed the mark it inherited, as far as it may. */
export const unknownFamily = 0;

/** What is known of a child that nobody waits for. */
export interface Remains {
  /** The number that it inherited; null for what no worker started. */
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

/** Makes orphans of our descendants children of this process, and waits for them, so that no zombie stays. It keeps no process alive. */
export function adoptOrphans(): void {
  if (isAdopting) return;
  isAdopting = true;
  becomeSubreaper();
  process.on("SIGCHLD", reap);
}

/** Calls `onEnd` once when an adopted child has ended and was waited for: its pid and its memory are free then. */
export function watchAdopted(pid: number, onEnd: (end: ProcessEnd) => void): void {
  assert(!watched.has(pid), `process ${pid} is watched already`);
  watched.set(pid, onEnd);
  // It may have ended before anybody watched: its signal is gone.
  reapWatched(pid);
}

/** Whether `watchAdopted` may be called for it: a child that Node did not spawn and nobody watches. */
export function isAdoptable(pid: number): boolean {
  return pid > 1 && !isKnown(pid) && isChild(pid);
}

/**
 * Kills those adopted children which nobody watches and whose family is gone, then what these leave in turn. Resolves when there are
 * no more.
 */
export async function endRemains(isGone: (remains: Remains) => boolean): Promise<void> {
  for (let found = true; found;) {
    const ends: Promise<unknown>[] = [];
    for (const pid of await childrenOf(process.pid)) {
      if (isKnown(pid)) continue;
      const remains = await remainsOf(pid);
      if (remains === null || !isGone(remains)) continue;
      // Asked last, with nothing in between: what is a child now keeps its pid until it is waited for.
      if (isKnown(pid) || !isChild(pid)) continue;
      if (!killed(pid)) continue;
      ends.push(new Promise((resolve) => watchAdopted(pid, resolve)));
    }
    await Promise.all(ends);
    found = ends.length > 0;
  }
}

/** Kills it; false where it has become another user's, who alone may end it. */
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

/** See _FAMILY_MARK in zygote.py: the number of the family is what the limit exceeds 10^12 by. */
export function familyIn(limits: string): number | null {
  const [, soft = "", hard = ""] = /^Max realtime timeout +(\S+) +(\S+)/m.exec(limits) ?? [];
  const family = Number(soft) - familyMark;
  if (family > 0 && family < 2 ** 32) return family;
  // A bound that is none of ours on a resource that nobody else bounds: a mark that somebody lowered.
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
    // Node's turn; those behind it follow when it has taken it. Who is watched need not wait for that.
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
