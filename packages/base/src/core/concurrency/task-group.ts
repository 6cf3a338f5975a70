/**
 * The owner of background tasks. `run` starts a task with the group's signal. Disposing the group aborts the signal, then waits for every
 * task. `onFailure` receives the error of a task that fails before the abort.
 */
export class TaskGroup implements AsyncDisposable {
  readonly #controller = new AbortController();
  readonly #running = new Set<Promise<void>>();
  readonly #onFailure: (error: unknown) => void;

  constructor(onFailure: (error: unknown) => void) {
    this.#onFailure = onFailure;
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  run(task: (signal: AbortSignal) => Promise<void>): void {
    const running = task(this.signal)
      .catch((error: unknown) => {
        if (!(this.signal.aborted && error === this.signal.reason)) this.#onFailure(error);
      })
      .finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  /** Waits for every task, including tasks that start meanwhile, and aborts none. */
  async waitForTasks(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#controller.abort(new Error("closed"));
    await this.waitForTasks();
  }
}
