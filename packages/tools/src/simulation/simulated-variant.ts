import type { ResourceCapacity, ScalableResources, TargetKey } from "@galatea/hosting/scaling";

/** A variant whose new instances are in service after the startup time. Removed instances end at once. */
export class SimulatedVariant implements ScalableResources {
  readonly #startupMs: number;
  readonly #nowMs: () => number;
  #desired: number;
  #running: number;
  #change: { readonly readyMs: number; readonly done: () => void } | null = null;

  constructor(count: number, { startupMs, nowMs }: { readonly startupMs: number; readonly nowMs: () => number }) {
    this.#desired = count;
    this.#running = count;
    this.#startupMs = startupMs;
    this.#nowMs = nowMs;
  }

  get desired(): number {
    return this.#desired;
  }

  get running(): number {
    return this.#running;
  }

  capacity(): Promise<ResourceCapacity> {
    return Promise.resolve({ desired: this.#desired, running: this.#running, isMoving: this.#change !== null });
  }

  scale(_: TargetKey, to: number): Promise<{ readonly done: Promise<void> }> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#change = { readyMs: this.#nowMs() + (to > this.#running ? this.#startupMs : 0), done: resolve };
    this.#desired = to;
    return Promise.resolve({ done: promise });
  }

  /** Puts instances in service whose startup time has elapsed. */
  advance(): void {
    if (this.#change !== null && this.#nowMs() >= this.#change.readyMs) this.complete();
  }

  /** Completes the change in progress, if any, even if the startup time of its instances has not elapsed. */
  complete(): void {
    this.#running = this.#desired;
    this.#change?.done();
    this.#change = null;
  }
}
