import assert from "node:assert/strict";
import { TaskGroup } from "@galatea/base";
import { addFigures } from "../figures.ts";
import type { PlatformClient } from "./platform-client.ts";

/** Clients that invoke an endpoint one request after another, until `end` is called. */
export class ConstantLoad implements AsyncDisposable {
  readonly #tasks = new TaskGroup((error) => {
    throw error;
  });
  readonly #endpoint: string;
  readonly #failures: string[] = [];
  #answered = 0;
  #worstMs = 0;
  #isEnding = false;

  /** `clients`: each sends one request at a time. */
  constructor(endpoint: string, clients: readonly PlatformClient[]) {
    this.#endpoint = endpoint;
    for (const client of clients) this.#tasks.run(() => this.#run(client));
  }

  get answered(): number {
    return this.#answered;
  }

  async #run(client: PlatformClient): Promise<void> {
    while (!this.#isEnding) {
      const start = performance.now();
      try {
        assert.deepEqual(await client.invoke(this.#endpoint), [2, 4, 6, 8]);
        this.#answered += 1;
      } catch (error) {
        this.#failures.push(`${new Date().toISOString()} ${String(error)}`);
      }
      this.#worstMs = Math.max(this.#worstMs, performance.now() - start);
    }
  }

  /** Ends the load, adds its figures to the table that `npm run cluster` prints, and returns the errors of failed requests. */
  async end(event: string): Promise<readonly string[]> {
    await this[Symbol.asyncDispose]();
    addFigures(event, {
      answered: this.#answered,
      failed: this.#failures.length,
      "worst ms": Math.round(this.#worstMs),
    });
    return this.#failures;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isEnding = true;
    await this.#tasks.waitForTasks();
  }
}
