/** A resource that its first user opens. It closes with its owner if it was opened. After a failed opening the next user tries again. */
export class LazyResource<Resource extends AsyncDisposable | Disposable> implements AsyncDisposable {
  readonly #open: () => Promise<Resource>;
  #opened: Promise<Resource> | null = null;
  #isClosed = false;

  constructor(open: () => Promise<Resource>) {
    this.#open = open;
  }

  /** Null until the first user. */
  get opened(): Promise<Resource> | null {
    return this.#opened;
  }

  get(): Promise<Resource> {
    if (this.#isClosed) return Promise.reject(new Error("the resource is closed"));
    if (this.#opened === null) {
      const opened = this.#open();
      this.#opened = opened;
      opened.catch(() => {
        this.#opened = null;
      });
    }
    return this.#opened;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    // The users of a failed opening have received its error.
    const resource = await this.#opened?.catch(() => null);
    if (resource === undefined || resource === null) return;
    if (Symbol.asyncDispose in resource) await resource[Symbol.asyncDispose]();
    else resource[Symbol.dispose]();
  }
}
