import { assert } from "../base/index.ts";
import { becomeSubreaper, reapNow, reapOneOfGroup, signalGroup } from "../native/index.ts";
import { endOfWaitStatus, type ProcessEnd } from "./process-end.ts";

/**
 * Reaps children that Node did not spawn: grandchildren whose parent ended at once, so that the kernel gave them to this process, and
 * what they leave orphaned in their process groups. (A child of Node's is never in such a group, so none is taken from Node.)
 * There is one per program that forks this way; it keeps no process alive.
 */
export class ChildReaper implements Disposable {
  readonly #watched = new Map<number, (end: ProcessEnd) => void>();
  /** Groups whose leader was reaped while other processes were in them: those are ours to reap too. */
  readonly #remains = new Set<number>();
  readonly #onSignal = () => this.#sweep();

  constructor() {
    becomeSubreaper();
    process.on("SIGCHLD", this.#onSignal);
  }

  /** Calls `onEnd` once when the process has ended and was reaped: its pid and its memory are free then. */
  watch(pid: number, onEnd: (end: ProcessEnd) => void): void {
    assert(!this.#watched.has(pid), `process ${pid} is watched already`);
    this.#watched.set(pid, onEnd);
    // It may have ended before anybody watched: its signal is gone.
    this.#check(pid);
  }

  #sweep(): void {
    for (const pid of this.#watched.keys()) this.#check(pid);
    for (const group of this.#remains) this.#reapRemains(group);
  }

  #check(pid: number): void {
    const result = reapNow(pid);
    assert(result.kind !== "not a child", `process ${pid} is not a child of this one`);
    if (result.kind === "ended") return this.#onEnded(pid, result.status);
    for (let orphan = reapOneOfGroup(pid); orphan !== null; orphan = reapOneOfGroup(pid)) {
      if (orphan.pid === pid) return this.#onEnded(pid, orphan.status);
    }
  }

  #onEnded(pid: number, status: number): void {
    const onEnd = this.#watched.get(pid)!;
    this.#watched.delete(pid);
    this.#remains.add(pid);
    onEnd(endOfWaitStatus(status));
    this.#reapRemains(pid);
  }

  /** A group's number is not given to another process while anything is in it, so it is safe to ask by. */
  #reapRemains(group: number): void {
    while (reapOneOfGroup(group) !== null);
    if (!signalGroup(group, 0)) this.#remains.delete(group);
  }

  [Symbol.dispose](): void {
    process.off("SIGCHLD", this.#onSignal);
  }
}
