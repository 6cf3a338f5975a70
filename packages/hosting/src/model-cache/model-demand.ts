/** Which models the requests of one instance are for, from when they come to when they have been answered. */
export class ModelDemand {
  readonly #counts = new Map<string, number>();
  #sum = 0;

  /** To be disposed once, when the request is over. */
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

  /** Whether there are as many requests for it as for the others on average, or more. */
  isMostlyFor(target: string): boolean {
    return this.of(target) * this.#counts.size >= this.#sum;
  }
}
