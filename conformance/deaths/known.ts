import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";

/** Nobody answered: the platform was killed, with the request under way or before it. */
export class Unanswered extends Error {}

/** What the platform answers, refusals among it; throws Unanswered where it does not. */
export async function answered<Answer>(asked: Promise<Answer>): Promise<Answer> {
  try {
    return await asked;
  } catch (error) {
    const { $metadata: metadata } = error as { readonly $metadata?: { readonly httpStatusCode?: number } };
    if (metadata?.httpStatusCode === undefined) throw new Unanswered(String(error), { cause: error });
    throw error;
  }
}

/** What a client knows of something: what was acknowledged last, and what it has begun since then without an answer. */
export class Known<Value> {
  readonly #what: string;
  #may: readonly Value[];

  constructor(what: string, first: Value) {
    this.#what = what;
    this.#may = [first];
  }

  get value(): Value {
    return this.#may[0] as Value;
  }

  /** Sure from the moment that it is acknowledged. */
  async becomes(value: Value, ask: () => Promise<unknown>): Promise<void> {
    this.#may = [...this.#may, value];
    await answered(ask());
    this.#may = [value];
  }

  /** Fails for what was neither acknowledged last nor begun. */
  found(value: Value): void {
    const isKnown = this.#may.some((each) => isDeepStrictEqual(each, value));
    assert.ok(isKnown, `${this.#what} is ${JSON.stringify(value)}, and may be ${JSON.stringify(this.#may)}`);
    this.#may = [value];
  }
}
