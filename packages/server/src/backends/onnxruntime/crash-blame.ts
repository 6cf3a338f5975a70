/**
 * The runner has ended, and its running tasks with it. `certain`: this task ran alone, so it is to blame; `possible`: others ran too;
 * `none`: another task is known to be to blame.
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

/** A running task in the library, a run or a load, which may crash the process. */
export interface RunningTask {
  /** Resolves when nothing more comes from the task. */
  readonly closed: Promise<void>;
  /** Valid after `closed`: true if the process never started the task. */
  readonly isUntaken: boolean;
}

/** Running tasks of a process, and which of them is to blame when the process has ended. */
export class CrashBlame {
  readonly #underway = new Map<object, RunningTask>();
  /** The task because of which the process was ended. */
  #culprit: object | null = null;
  #end: { readonly how: string; readonly count: number } | null = null;

  began(task: object, suspect: RunningTask): void {
    this.#underway.set(task, suspect);
  }

  over(task: object): void {
    this.#underway.delete(task);
  }

  /** Blames a task before the process is ended because of it. */
  accuse(task: object): void {
    this.#culprit = task;
  }

  /** Resolves when nothing more can come from running tasks. */
  async closed(): Promise<void> {
    for (const { closed } of this.#underway.values()) await closed;
  }

  /** Records the end of the process. */
  ended(how: string): void {
    this.#end = { how, count: [...this.#underway.values()].filter(({ isUntaken }) => !isUntaken).length };
  }

  /** Returns the error of a running task, with its blame when the process has ended. */
  blamed(error: unknown, task: object): unknown {
    if (!(error instanceof RunnerEnded) || this.#end === null) return error;
    const { how, count } = this.#end;
    if (this.#culprit !== null) return new RunnerEnded(this.#culprit === task ? "certain" : "none", how);
    if (this.#underway.get(task)?.isUntaken === true) return new RunnerEnded("none", how);
    return new RunnerEnded(count === 1 ? "certain" : "possible", how);
  }
}
