/**
 * The owner of background tasks. `run` starts a task with the group's signal. Disposing the group aborts the signal and
 * waits for all tasks. `onFailure` receives the error of a task that fails before the abort.
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

  /** Waits for all tasks, including those that start while it waits. Does not abort any task. */
  async waitForTasks(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#controller.abort(new Error("closed"));
    await this.waitForTasks();
  }
}
