/**
 * A resource that the first call of `get` opens. Disposal closes the resource if it was opened. If opening fails, the
 * next call of `get` tries again.
 */
export class LazyResource<Resource extends AsyncDisposable | Disposable> implements AsyncDisposable {
  readonly #open: () => Promise<Resource>;
  #resource: Promise<Resource> | null = null;
  #isClosed = false;

  constructor(open: () => Promise<Resource>) {
    this.#open = open;
  }

  /** The resource, or its pending opening; null before the first call of `get`. */
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
    // Callers of `get` have already received the error of a failed opening.
    const resource = await this.#resource?.catch(() => null);
    if (resource === undefined || resource === null) return;
    if (Symbol.asyncDispose in resource) await resource[Symbol.asyncDispose]();
    else resource[Symbol.dispose]();
  }
}
