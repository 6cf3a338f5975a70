import { assert, InferenceError, TaskGroup, type Clock, type Logger } from "@galatea/base";
import type { MachineFacts } from "./confinement-plan.ts";
import { isPreImportAllowed } from "./pre-imports.ts";
import type { PythonEnvironment } from "./python-environment.ts";
import { Zygote, ZygoteEnded, type ForkedWorker, type ForkOptions } from "./zygote.ts";

export interface ZygotePoolOptions {
  readonly workerDirectory: string;
  /** Returns `Tenants.tenantArguments`, for zygotes of the operator's environments. */
  readonly tenantArguments: () => string;
  readonly zygotesMax: number;
  /** Time in milliseconds without a fork after which a zygote ends. The next load starts another one. */
  readonly idleMs: number;
  readonly learnedModulesMax: number;
  /** Modules that the operator allows zygotes to import, in addition to those in pre-imports.ts. */
  readonly preImports: ReadonlySet<string>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The state of an environment that has a zygote. */
interface Warm {
  readonly environment: PythonEnvironment;
  zygote: Promise<Zygote>;
  /** The start of a second zygote with more modules, which replaces the first one when it is ready; null if none is starting. */
  successor: Promise<void> | null;
  readonly learned: Set<string>;
  /** Modules whose import made a zygote unable to fork. Zygotes never import them again. */
  readonly refused: Set<string>;
  users: number;
  idle: Disposable | null;
}

/**
 * The zygotes, one for each environment. If there are more than the limit, the zygote that has been idle longest is ended. A zygote imports
 * modules that models of its environment have used, so that later workers need not import them.
 */
export class ZygotePool implements AsyncDisposable {
  readonly #options: ZygotePoolOptions;
  /** Environments ordered by last use, the least recently used first. */
  readonly #warm = new Map<string, Warm>();
  readonly #ending: TaskGroup;
  /** Aborts the start of interpreters when the pool is closed. */
  readonly #closing = new AbortController();
  /** True after the warning about missing confinement was logged. It is logged once, because it applies to the whole machine. */
  #isUnconfinedLogged = false;

  constructor(options: ZygotePoolOptions) {
    this.#options = options;
    this.#ending = new TaskGroup((error) =>
      options.logger.error(`failed to end a Python interpreter: ${String(error)}`),
    );
  }

  /**
   * Forks a worker for an environment, and starts the environment's zygote first if none is running. If the zygote dies during the fork,
   * the fork is retried once with a new zygote. Rejects with ZygoteEnded if the second zygote dies too.
   */
  async fork(environment: PythonEnvironment, fork: ForkOptions): Promise<ForkedWorker> {
    const forking = (zygote: Zygote) => zygote.fork(fork);
    try {
      return await this.#using(environment, forking);
    } catch (error) {
      if (!(error instanceof ZygoteEnded)) throw error;
      return await this.#using(environment, forking);
    }
  }

  /** Returns the properties of this machine, as a zygote of the environment has determined them. */
  async machineFacts(environment: PythonEnvironment): Promise<MachineFacts> {
    const facts = await this.#using(environment, (zygote) => Promise.resolve(zygote.machine));
    assert(facts !== null, "a zygote of tenants' workers reports what the machine allows");
    return facts;
  }

  /** Ends the zygotes of one environment. Resolves when they have ended. */
  async endEnvironment(key: string): Promise<void> {
    const warm = this.#warm.get(key);
    if (warm === undefined) return;
    this.#end(warm);
    await Promise.all([this.#ending.waitForTasks(), warm.successor]);
  }

  get #closed(): boolean {
    return this.#closing.signal.aborted;
  }

  /** Starts the environment's zygote if there is none. */
  warmUp(environment: PythonEnvironment): Promise<void> {
    return this.#using(environment, () => Promise.resolve());
  }

  /** Calls `work` with a zygote that can fork. The zygote is not ended before the first `await` in `work`. */
  async #using<Result>(environment: PythonEnvironment, work: (zygote: Zygote) => Promise<Result>): Promise<Result> {
    this.#closing.signal.throwIfAborted();
    const warm = this.#take(environment);
    warm.users++;
    warm.idle?.[Symbol.dispose]();
    try {
      let zygote = await this.#alive(warm);
      // A newer zygote may have replaced this one in the meantime.
      while (zygote.isClosing) zygote = await this.#alive(warm);
      return await work(zygote);
    } finally {
      if (--warm.users === 0 && !this.#closed)
        warm.idle = this.#options.clock.timer(this.#options.idleMs, () => this.#end(warm));
    }
  }

  /** Records modules that a loaded model has imported. The next zygote of the environment imports them before it forks. */
  learn(environment: PythonEnvironment, modules: readonly string[]): void {
    const warm = this.#warm.get(environment.key);
    if (warm === undefined || this.#closed) return;
    const { preImports } = this.#options;
    const allowed = modules.filter((name) => isPreImportAllowed(name, preImports));
    const fresh = allowed.filter((name) => !warm.learned.has(name) && !warm.refused.has(name));
    const capacity = this.#options.learnedModulesMax - warm.learned.size;
    // The number of rejected modules is limited too, because models choose the names.
    if (fresh.length === 0 || capacity <= 0 || warm.refused.size > 16 * this.#options.learnedModulesMax) return;
    for (const name of fresh.slice(0, capacity)) warm.learned.add(name);
    warm.successor ??= this.#succeed(warm).finally(() => (warm.successor = null));
  }

  /**
   * Starts a second zygote with more modules, while the first one continues to fork. No load has to wait for imports that it does not need.
   */
  async #succeed(warm: Warm): Promise<void> {
    for (;;) {
      const modules = [...warm.learned];
      let successor: Zygote;
      try {
        successor = await this.#open(warm.environment, modules);
      } catch (error) {
        const known = (await warm.zygote.catch(() => null))?.modules ?? [];
        for (const name of modules.filter((one) => !known.includes(one))) {
          warm.learned.delete(name);
          warm.refused.add(name);
        }
        this.#options.logger.verbose(`not preloaded: ${(error as Error).message}`, {
          zygote: warm.environment.key,
        });
        return;
      }
      const former = warm.zygote;
      // The environment or the whole pool may have been closed while the second zygote started.
      if (this.#closed || this.#warm.get(warm.environment.key) !== warm) return await successor[Symbol.asyncDispose]();
      warm.zygote = Promise.resolve(successor);
      this.#closeZygote(former);
      if (warm.learned.size === modules.length) return;
    }
  }

  #take(environment: PythonEnvironment): Warm {
    const known = this.#warm.get(environment.key);
    if (known !== undefined) {
      this.#warm.delete(environment.key);
      this.#warm.set(environment.key, known);
      return known;
    }
    if (this.#warm.size >= this.#options.zygotesMax) this.#evict();
    const warm: Warm = {
      environment,
      zygote: this.#open(environment, environment.imports),
      successor: null,
      learned: new Set(environment.imports),
      refused: new Set(),
      users: 0,
      idle: null,
    };
    warm.zygote.catch(() => {}); // The caller of the next fork receives the rejection.
    this.#warm.set(environment.key, warm);
    return warm;
  }

  #evict(): void {
    for (const warm of this.#warm.values()) if (warm.users === 0) return this.#end(warm);
    throw new InferenceError(
      "UNAVAILABLE",
      `all ${this.#options.zygotesMax} Python environments that may be warm at once are busy`,
    );
  }

  /** Returns the environment's zygote. Starts one if there is none, or if it has ended. */
  async #alive(warm: Warm): Promise<Zygote> {
    const current = warm.zygote;
    const zygote = await current.catch(() => null);
    // A zygote that is started after the pool was closed would never be ended.
    this.#closing.signal.throwIfAborted();
    if (zygote?.alive) return zygote;
    if (warm.zygote === current) {
      if (zygote !== null) this.#closeZygote(current);
      warm.zygote = this.#open(warm.environment, [...warm.learned]);
      warm.zygote.catch(() => {});
    }
    return await warm.zygote;
  }

  async #open(environment: PythonEnvironment, modules: readonly string[]): Promise<Zygote> {
    const { workerDirectory, clock, logger } = this.#options;
    const tenantArguments = environment.directory === null ? this.#options.tenantArguments() : "";
    const zygote = await Zygote.open(
      { environment, workerDirectory, modules, tenantArguments, clock, logger },
      this.#closing.signal,
    );
    if (zygote.unconfined !== null && !this.#isUnconfinedLogged) {
      this.#isUnconfinedLogged = true;
      const consequence = "the code of one model can reach the memory of others; host only models that you trust";
      logger.warning(`Python models are not isolated by Landlock (${zygote.unconfined}): ${consequence}`);
    }
    return zygote;
  }

  #end(warm: Warm): void {
    warm.idle?.[Symbol.dispose]();
    this.#warm.delete(warm.environment.key);
    this.#closeZygote(warm.zygote);
  }

  #closeZygote(zygote: Promise<Zygote>): void {
    this.#ending.run(() =>
      zygote.then(
        (one) => (this.#closed ? one[Symbol.asyncDispose]() : one.closeWhenUnused()),
        () => {}, // The zygote never started, therefore there is nothing to end.
      ),
    );
  }

  /** Rejects pending calls and ends all zygotes. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new InferenceError("UNAVAILABLE", "the Python backend is shutting down"));
    const successors = [...this.#warm.values()].map((warm) => warm.successor);
    for (const warm of this.#warm.values()) this.#end(warm);
    await Promise.all([this.#ending.waitForTasks(), ...successors]);
  }
}
