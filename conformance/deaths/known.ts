import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";

/** The platform was killed before or during the request, so there was no response. */
export class Unanswered extends Error {}

/** Resolves with the platform's response or rejects with its error. Throws Unanswered if there was no response. */
export async function answered<Answer>(asked: Promise<Answer>): Promise<Answer> {
  try {
    return await asked;
  } catch (error) {
    const { $metadata: metadata } = error as { readonly $metadata?: { readonly httpStatusCode?: number } };
    if (metadata?.httpStatusCode === undefined) throw new Unanswered(String(error), { cause: error });
    throw error;
  }
}

/** The possible values of a resource: the last acknowledged one, and those of later operations without a response. */
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

  /** Performs an operation that sets the value. The value is certain once the operation is acknowledged. */
  async becomes(value: Value, ask: () => Promise<unknown>): Promise<void> {
    this.#may = [...this.#may, value];
    await answered(ask());
    this.#may = [value];
  }

  /** Fails if the value is neither the last acknowledged one nor that of a later operation. */
  found(value: Value): void {
    const isKnown = this.#may.some((each) => isDeepStrictEqual(each, value));
    assert.ok(isKnown, `${this.#what} is ${JSON.stringify(value)}, and may be ${JSON.stringify(this.#may)}`);
    this.#may = [value];
  }
}
