import { assert } from "../base/index.ts";
import { becomeSubreaper, reapNow } from "../native/index.ts";
import { endOfWaitStatus, type ProcessEnd } from "./process-end.ts";

/**
 * Reaps children that Node did not spawn: grandchildren whose parent ended at once, so that the kernel gave them to this process.
 * There is one per program that forks this way; it keeps no process alive.
 */
export class ChildReaper implements Disposable {
  readonly #watched = new Map<number, (end: ProcessEnd) => void>();
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
  }

  #check(pid: number): void {
    const result = reapNow(pid);
    if (result.kind === "running") return;
    const onEnd = this.#watched.get(pid)!;
    this.#watched.delete(pid);
    assert(result.kind === "ended", `process ${pid} is not a child of this one`);
    onEnd(endOfWaitStatus(result.status));
  }

  [Symbol.dispose](): void {
    process.off("SIGCHLD", this.#onSignal);
  }
}
