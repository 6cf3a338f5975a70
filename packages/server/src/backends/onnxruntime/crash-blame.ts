/**
 * The error of a task whose process has ended. `certain`: this task ran alone, so it caused the crash. `possible`: other tasks ran at the
 * same time. `none`: another task is known to be the cause.
 */
export class RunnerEnded extends Error {
  readonly blame: "certain" | "possible" | "none";
  /** Description of the end, such as "signal SIGFPE". */
  readonly how: string;

  constructor(blame: RunnerEnded["blame"], how: string) {
    super(`the ONNX Runtime process has ended (${how})`);
    this.blame = blame;
    this.how = how;
  }
}

/** A run or load inside the library, which may crash the process. */
export interface RunningTask {
  /** Resolves when no more messages about the task can arrive. */
  readonly closed: Promise<void>;
  /** Valid after `closed`: true if the process never started the task. */
  readonly isUnread: boolean;
}

/** Tracks the running tasks of a process, and determines which one caused its end. */
export class CrashBlame {
  readonly #underway = new Map<object, RunningTask>();
  /** The task because of which the server killed the process; null when it did not. */
  #culprit: object | null = null;
  #end: { readonly how: string; readonly count: number } | null = null;

  start(task: object, suspect: RunningTask): void {
    this.#underway.set(task, suspect);
  }

  end(task: object): void {
    this.#underway.delete(task);
  }

  /** Marks a task as the cause, before the process is killed because of it. */
  accuse(task: object): void {
    this.#culprit = task;
  }

  /** Resolves when no more messages about running tasks can arrive. */
  async closed(): Promise<void> {
    for (const { closed } of this.#underway.values()) await closed;
  }

  /** Records the end of the process. */
  ended(how: string): void {
    this.#end = { how, count: [...this.#underway.values()].filter(({ isUnread }) => !isUnread).length };
  }

  /** Returns the error of a running task: RunnerEnded with the cause when the process has ended, otherwise `error`. */
  blamed(error: unknown, task: object): unknown {
    if (!(error instanceof RunnerEnded) || this.#end === null) return error;
    const { how, count } = this.#end;
    if (this.#culprit !== null) return new RunnerEnded(this.#culprit === task ? "certain" : "none", how);
    if (this.#underway.get(task)?.isUnread === true) return new RunnerEnded("none", how);
    return new RunnerEnded(count === 1 ? "certain" : "possible", how);
  }
}
