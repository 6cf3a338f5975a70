import assert from "node:assert/strict";
import { isDeepStrictEqual } from "node:util";

/** The platform was killed before or during the request, so there was no response. */
export class NoResponse extends Error {}

/** Resolves with the platform's response or rejects with its error. Throws Unanswered if there was no response. */
export async function responseOf<Response>(response: Promise<Response>): Promise<Response> {
  try {
    return await response;
  } catch (error) {
    const { $metadata: metadata } = error as { readonly $metadata?: { readonly httpStatusCode?: number } };
    if (metadata?.httpStatusCode === undefined) throw new NoResponse(String(error), { cause: error });
    throw error;
  }
}

/** The possible values of a resource: the last acknowledged one, and those of later operations without a response. */
export class AcknowledgedValue<Value> {
  readonly #what: string;
  #possible: readonly Value[];

  constructor(what: string, first: Value) {
    this.#what = what;
    this.#possible = [first];
  }

  get value(): Value {
    return this.#possible[0] as Value;
  }

  /** Performs an operation that sets the value. The value is certain once the operation is acknowledged. */
  async write(value: Value, send: () => Promise<unknown>): Promise<void> {
    this.#possible = [...this.#possible, value];
    await responseOf(send());
    this.#possible = [value];
  }

  /** Fails if the value is neither the last acknowledged one nor that of a later operation. */
  observe(value: Value): void {
    const isKnown = this.#possible.some((each) => isDeepStrictEqual(each, value));
    assert.ok(isKnown, `${this.#what} is ${JSON.stringify(value)}, and may be ${JSON.stringify(this.#possible)}`);
    this.#possible = [value];
  }
}
