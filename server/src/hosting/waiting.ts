/** Rejects with the signal's reason as soon as it aborts; the promise itself goes on. */
export function orAborted<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  if (signal.aborted) return Promise.reject(signal.reason as Error);
  return new Promise((resolve, reject) => {
    const onAbort = () => reject(signal.reason as Error);
    signal.addEventListener("abort", onAbort, { once: true });
    void promise.then(resolve, reject).finally(() => signal.removeEventListener("abort", onAbort));
  });
}

/** First come, first served. */
export class Semaphore {
  readonly #waiting = new Set<() => void>();
  #free: number;

  constructor(count: number) {
    this.#free = count;
  }

  async acquire(signal: AbortSignal): Promise<Disposable> {
    signal.throwIfAborted();
    if (this.#free > 0) {
      this.#free -= 1;
    } else {
      await new Promise<void>((resolve, reject) => {
        const granted = () => {
          signal.removeEventListener("abort", onAbort);
          resolve();
        };
        const onAbort = () => {
          this.#waiting.delete(granted);
          reject(signal.reason as Error);
        };
        this.#waiting.add(granted);
        signal.addEventListener("abort", onAbort, { once: true });
      });
    }
    return { [Symbol.dispose]: () => this.#release() };
  }

  #release(): void {
    const [next] = this.#waiting;
    if (next === undefined) {
      this.#free += 1;
      return;
    }
    this.#waiting.delete(next);
    next();
  }
}

export class Mutex extends Semaphore {
  constructor() {
    super(1);
  }
}

/** Something changed: everybody who waits looks again. */
export class Gate {
  #next = Promise.withResolvers<void>();

  opened(): Promise<void> {
    return this.#next.promise;
  }

  open(): void {
    this.#next.resolve();
    this.#next = Promise.withResolvers<void>();
  }
}
