/** Writes of one thing, of which the last says everything: those that come while one is under way become one. */
export class LatestWrite<Value> {
  readonly #write: (value: Value) => Promise<void>;
  #underWay: Promise<void> = Promise.resolve();
  #next: { value: Value } | null = null;

  constructor(write: (value: Value) => Promise<void>) {
    this.#write = write;
  }

  /** Resolves when this value or a later one is written. */
  write(value: Value): Promise<void> {
    if (this.#next !== null) {
      this.#next.value = value;
      return this.#underWay;
    }
    const next = { value };
    this.#next = next;
    this.#underWay = this.#underWay
      .catch(() => {})
      .then(() => {
        this.#next = null;
        return this.#write(next.value);
      });
    return this.#underWay;
  }
}
