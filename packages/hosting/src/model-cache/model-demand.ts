/** The number of pending requests for each model of one container. */
export class ModelDemand {
  readonly #counts = new Map<string, number>();
  #sum = 0;

  /** Counts a pending request. Dispose the result once, when the request has ended. */
  begin(target: string): Disposable {
    this.#sum += 1;
    this.#counts.set(target, this.of(target) + 1);
    return {
      [Symbol.dispose]: () => {
        this.#sum -= 1;
        const left = this.of(target) - 1;
        if (left > 0) this.#counts.set(target, left);
        else this.#counts.delete(target);
      },
    };
  }

  of(target: string): number {
    return this.#counts.get(target) ?? 0;
  }

  /** Returns true if the model has at least the average number of pending requests. */
  isMostlyFor(target: string): boolean {
    return this.of(target) * this.#counts.size >= this.#sum;
  }
}
