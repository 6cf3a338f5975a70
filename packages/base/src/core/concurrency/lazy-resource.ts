/**
 * A resource that the first call of `get` opens. Disposal closes the resource if it was opened. After a failed opening the next call tries
 * again.
 */
export class LazyResource<Resource extends AsyncDisposable | Disposable> implements AsyncDisposable {
  readonly #open: () => Promise<Resource>;
  #resource: Promise<Resource> | null = null;
  #isClosed = false;

  constructor(open: () => Promise<Resource>) {
    this.#open = open;
  }

  /** Null until the first call of `get`. */
  get opened(): Promise<Resource> | null {
    return this.#resource;
  }

  get(): Promise<Resource> {
    if (this.#isClosed) return Promise.reject(new Error("the resource is closed"));
    if (this.#resource === null) {
      const opened = this.#open();
      this.#resource = opened;
      opened.catch(() => {
        this.#resource = null;
      });
    }
    return this.#resource;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    // The users of a failed opening have received its error.
    const resource = await this.#resource?.catch(() => null);
    if (resource === undefined || resource === null) return;
    if (Symbol.asyncDispose in resource) await resource[Symbol.asyncDispose]();
    else resource[Symbol.dispose]();
  }
}
