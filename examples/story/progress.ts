/** Progress on screen: a live line where there is a terminal, plain lines where there is none. */
export class Progress implements Disposable {
  readonly #live: boolean;
  #line = "";
  #startedMs = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor(live: boolean) {
    this.#live = live;
  }

  /** Runs one step under its name; `detail` replaces what stands behind the name while it runs. */
  async step<T>(name: string, work: (detail: (text: string) => void) => Promise<T>): Promise<T> {
    this.#startedMs = performance.now();
    this.#line = name;
    if (this.#live) {
      this.#draw();
      this.#timer = setInterval(() => this.#draw(), 100);
    }
    const detail = (text: string) => {
      this.#line = `${name}: ${text}`;
    };
    try {
      const result = await work(detail);
      this.#end("done", name);
      return result;
    } catch (error) {
      this.#end("failed", name);
      throw error;
    }
  }

  #draw(): void {
    const seconds = ((performance.now() - this.#startedMs) / 1000).toFixed(1);
    process.stdout.write(`\r\u001b[2K  ... ${this.#line} (${seconds} s)`);
  }

  #end(outcome: string, name: string): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    const took = performance.now() - this.#startedMs;
    const time = took < 1000 ? `${took.toFixed(0)} ms` : `${(took / 1000).toFixed(1)} s`;
    process.stdout.write(`${this.#live ? "\r\u001b[2K" : ""}  ${name}: ${outcome}, ${time}\n`);
  }

  [Symbol.dispose](): void {
    if (this.#timer !== null) clearInterval(this.#timer);
  }
}
