/** Coalesces writes. Of the values that arrive during a write, only the last one is written. */
export class CoalescedWriter<Value> {
  readonly #write: (value: Value) => Promise<void>;
  #current: Promise<void> = Promise.resolve();
  #next: { value: Value } | null = null;

  constructor(write: (value: Value) => Promise<void>) {
    this.#write = write;
  }

  /** Resolves when this value or a later one is written; rejects with the error of that write. */
  write(value: Value): Promise<void> {
    if (this.#next !== null) {
      this.#next.value = value;
      return this.#current;
    }
    const next = { value };
    this.#next = next;
    this.#current = this.#current
      .catch(() => {})
      .then(() => {
        this.#next = null;
        return this.#write(next.value);
      });
    return this.#current;
  }
}
