/**
 * The runner has ended, and with it what it was doing. `certain`: this was all that it did, so this ended it; `possible`: it did other
 * things too; `none`: something else is known to have ended it.
 */
export class RunnerEnded extends Error {
  readonly blame: "certain" | "possible" | "none";
  /** "signal SIGFPE". */
  readonly how: string;

  constructor(blame: RunnerEnded["blame"], how: string) {
    super(`the ONNX Runtime process has ended (${how})`);
    this.blame = blame;
    this.how = how;
  }
}

/** A run in the library, or a load: what may end the process. */
export interface Suspect {
  /** Resolves when nothing more comes of it. */
  readonly closed: Promise<void>;
  /** Known when it is closed: the process never began with it. */
  readonly isUntaken: boolean;
}

/** What is under way in a process, and what of it is to blame when the process has ended. */
export class Suspects {
  readonly #underway = new Map<object, Suspect>();
  /** For whose sake the process was ended. */
  #culprit: object | null = null;
  #end: { readonly how: string; readonly count: number } | null = null;

  began(task: object, suspect: Suspect): void {
    this.#underway.set(task, suspect);
  }

  over(task: object): void {
    this.#underway.delete(task);
  }

  /** The process is about to be ended because of this one. */
  accuse(task: object): void {
    this.#culprit = task;
  }

  /** Resolves when of nothing under way anything more can come. */
  async closed(): Promise<void> {
    for (const { closed } of this.#underway.values()) await closed;
  }

  /** The process has ended. */
  ended(how: string): void {
    this.#end = { how, count: [...this.#underway.values()].filter(({ isUntaken }) => !isUntaken).length };
  }

  /** The error of something under way, with the blame that it deserves where the process has ended. */
  blamed(error: unknown, task: object): unknown {
    if (!(error instanceof RunnerEnded) || this.#end === null) return error;
    const { how, count } = this.#end;
    if (this.#culprit !== null) return new RunnerEnded(this.#culprit === task ? "certain" : "none", how);
    if (this.#underway.get(task)?.isUntaken === true) return new RunnerEnded("none", how);
    return new RunnerEnded(count === 1 ? "certain" : "possible", how);
  }
}
