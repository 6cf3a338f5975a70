import { type Clock, ChangeNotifier, InferenceError, type Logger, SerialQueue } from "@galatea/base";
import type { Runner } from "./runner.ts";
import { RunnerEnded } from "./crash-blame.ts";

export interface IsolatedRunnersOptions {
  /** Maximum number of processes. When all are in use, a caller waits until one is free. */
  readonly runnersMax: number;
  /** Time in milliseconds for which an unused process is kept. */
  readonly idleMs: number;
  readonly start: (name: string) => Promise<Runner>;
  readonly clock: Clock;
  readonly log: Logger;
}

interface IsolatedRunner {
  readonly key: string;
  readonly starting: Promise<Runner>;
  /** Number of callers that use this process or wait for it. */
  userCount: number;
  /** Queue that runs the tasks of the process one after another. */
  readonly queue: SerialQueue;
  idle: Disposable | null;
}

/** Processes that each load the content of one model and run one task at a time, so that a crash is attributed to that task. */
export class IsolatedRunners implements AsyncDisposable {
  readonly #options: IsolatedRunnersOptions;
  readonly #byKey = new Map<string, IsolatedRunner>();
  /** Notifies waiting callers that a process may be free. */
  readonly #freed = new ChangeNotifier();
  #isClosed = false;

  constructor(options: IsolatedRunnersOptions) {
    this.#options = options;
  }

  /** Runs `work` in the process of this content, while no other task runs in that process. */
  async use<T>(key: string, work: (runner: Runner) => Promise<T>): Promise<T> {
    const apart = await this.#take(key);
    try {
      return await apart.queue.run(async () => {
        const runner = await apart.starting;
        if (!runner.alive) throw new RunnerEnded("none", "while the request was queued");
        return await work(runner);
      });
    } finally {
      this.#leave(apart);
    }
  }

  /** Ends the process of this content if it is unused. */
  async end(key: string): Promise<void> {
    const apart = this.#byKey.get(key);
    if (apart !== undefined) await this.#end(apart);
  }

  async forget(arenaId: number): Promise<void> {
    for (const apart of this.#byKey.values()) await (await apart.starting.catch(() => null))?.forget(arenaId);
  }

  async #take(key: string): Promise<IsolatedRunner> {
    for (;;) {
      if (this.#isClosed) throw new InferenceError("UNAVAILABLE", "the ONNX Runtime backend is closed");
      const known = this.#byKey.get(key);
      if (known !== undefined) return this.#enter(known);
      if (this.#byKey.size < this.#options.runnersMax) return this.#enter(this.#open(key));
      const idle = [...this.#byKey.values()].find(({ userCount }) => userCount === 0);
      if (idle === undefined) await this.#freed.nextChange();
      else await this.#end(idle);
    }
  }

  #open(key: string): IsolatedRunner {
    const starting = this.#options.start(`apart ${key.slice(0, 8)}`);
    const apart: IsolatedRunner = { key, starting, userCount: 0, queue: new SerialQueue(), idle: null };
    this.#byKey.set(key, apart);
    starting.then(
      (runner) => void runner.ended.then(() => this.#remove(apart)),
      () => this.#remove(apart),
    );
    return apart;
  }

  #enter(apart: IsolatedRunner): IsolatedRunner {
    apart.userCount += 1;
    apart.idle?.[Symbol.dispose]();
    apart.idle = null;
    return apart;
  }

  #leave(apart: IsolatedRunner): void {
    apart.userCount -= 1;
    if (apart.userCount > 0) return;
    this.#freed.notify();
    apart.idle = this.#options.clock.timer(this.#options.idleMs, () => {
      this.#end(apart).catch((error: unknown) =>
        this.#options.log.error(`failed to stop an idle ONNX Runtime process: ${String(error)}`),
      );
    });
  }

  async #end(apart: IsolatedRunner): Promise<void> {
    this.#remove(apart);
    await (await apart.starting.catch(() => null))?.[Symbol.asyncDispose]();
  }

  #remove(apart: IsolatedRunner): void {
    apart.idle?.[Symbol.dispose]();
    if (this.#byKey.get(apart.key) === apart) this.#byKey.delete(apart.key);
    this.#freed.notify();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await Promise.all([...this.#byKey.values()].map((apart) => this.#end(apart)));
    this.#freed.notify();
  }
}
