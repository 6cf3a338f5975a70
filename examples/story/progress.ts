export interface ProgressOptions {
  /** True for a terminal: the current line is redrawn. */
  readonly live: boolean;
  readonly out: { write(text: string): unknown };
  /** Aborts the running step; no further step starts. */
  readonly signal: AbortSignal;
}

const plainLineMs = 5000;

/** Prints progress: a redrawn line on a terminal, otherwise plain lines, one every 5 s during a step. */
export class Progress implements Disposable {
  readonly #live: boolean;
  readonly #out: ProgressOptions["out"];
  readonly #signal: AbortSignal;
  #line = "";
  #startedMs = 0;
  #timer: NodeJS.Timeout | null = null;

  constructor({ live, out, signal }: ProgressOptions) {
    this.#live = live;
    this.#out = out;
    this.#signal = signal;
  }

  /**
   * Runs a step under its name. `detail` replaces the text after the name while the step runs. Rejects with the
   * signal's reason at once; work that ignores the signal continues without effect.
   */
  async step<T>(name: string, work: (detail: (text: string) => void) => Promise<T>): Promise<T> {
    this.#signal.throwIfAborted();
    this.#startedMs = performance.now();
    this.#line = name;
    if (this.#live) this.#draw();
    this.#timer = setInterval(() => this.#draw(), this.#live ? 100 : plainLineMs);
    let running = true;
    const detail = (text: string) => {
      if (running) this.#line = `${name}: ${text}`;
    };
    const { promise: stopped, reject } = Promise.withResolvers<never>();
    const onAbort = () => reject(this.#signal.reason as Error);
    this.#signal.addEventListener("abort", onAbort, { once: true });
    try {
      const result = await Promise.race([work(detail), stopped]);
      this.#end("done", name);
      return result;
    } catch (error) {
      this.#end(this.#signal.aborted ? "stopped" : "failed", name);
      throw error;
    } finally {
      running = false;
      this.#signal.removeEventListener("abort", onAbort);
    }
  }

  #draw(): void {
    const seconds = ((performance.now() - this.#startedMs) / 1000).toFixed(1);
    const line = `  ... ${this.#line} (${seconds} s)`;
    this.#out.write(this.#live ? `\r\u001b[2K${line}` : `${line}\n`);
  }

  #end(outcome: string, name: string): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    const took = performance.now() - this.#startedMs;
    const time = took < 1000 ? `${took.toFixed(0)} ms` : `${(took / 1000).toFixed(1)} s`;
    this.#out.write(`${this.#live ? "\r\u001b[2K" : ""}  ${name}: ${outcome}, ${time}\n`);
  }

  [Symbol.dispose](): void {
    if (this.#timer !== null) clearInterval(this.#timer);
  }
}
