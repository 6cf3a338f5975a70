/** Writes of one thing, of which the last says everything: while one is under way the next ones become one. */
export class LatestWrite<Value> {
  readonly #write: (value: Value) => Promise<void>;
  #underWay: Promise<void> | null = null;
  #next: { value: Value; readonly written: Promise<void> } | null = null;

  constructor(write: (value: Value) => Promise<void>) {
    this.#write = write;
  }

  /** Resolves when this value or a later one is written. */
  write(value: Value): Promise<void> {
    if (this.#underWay === null) return this.#begin(value);
    if (this.#next !== null) {
      this.#next.value = value;
      return this.#next.written;
    }
    const written = this.#underWay
      .catch(() => {})
      .then(() => {
        const next = this.#next;
        this.#next = null;
        return next === null ? undefined : this.#begin(next.value);
      });
    this.#next = { value, written };
    return written;
  }

  #begin(value: Value): Promise<void> {
    const writing = this.#write(value).finally(() => {
      if (this.#underWay === writing) this.#underWay = null;
    });
    this.#underWay = writing;
    return writing;
  }
}
