import { InferenceError } from "../base/index.ts";

/**
 * Admits at most so many at once, the others in order of arrival. Those waiting are bounded by who asks: each instance of a
 * model runs one batch at a time, each load is one.
 */
export interface RunGate {
  /** Resolves when admitted; disposing what it gives lets the next one in. Rejects (CANCELLED) when aborted before. */
  enter(signal: AbortSignal | null): Promise<Disposable>;
  readonly waitingCount: number;
}

export function openGate(admittedMax: number): RunGate {
  const waiting = new Set<() => void>();
  let admittedCount = 0;

  function leave(): void {
    const [next] = waiting;
    if (next === undefined) admittedCount -= 1;
    else next();
  }

  /** One per entrance, so that disposing twice is harmless. */
  function pass(): Disposable {
    let inside = true;
    return {
      [Symbol.dispose]() {
        if (inside) leave();
        inside = false;
      },
    };
  }

  return {
    get waitingCount() {
      return waiting.size;
    },
    enter(signal) {
      if (signal?.aborted) return Promise.reject(new InferenceError("CANCELLED", "Request cancelled"));
      if (admittedCount < admittedMax) {
        admittedCount += 1;
        return Promise.resolve(pass());
      }
      return new Promise((resolve, reject) => {
        const admit = () => {
          waiting.delete(admit);
          signal?.removeEventListener("abort", giveUp);
          resolve(pass());
        };
        const giveUp = () => {
          waiting.delete(admit);
          reject(new InferenceError("CANCELLED", "Request cancelled"));
        };
        waiting.add(admit);
        signal?.addEventListener("abort", giveUp, { once: true });
      });
    },
  };
}
