import type * as fc from "fast-check";

/** What is attacked while a target is open. */
export interface Attack<Input> extends AsyncDisposable {
  /** Whether the input was taken rather than refused as documented; throws when it did anything else, or left something behind. */
  attempt(input: Input): boolean | Promise<boolean>;
}

/** One door that strangers can send anything through. */
export interface FuzzTarget<Input = unknown> {
  readonly name: string;
  readonly about: string;
  /** Of all inputs of a run, how many this target gets; shares of all targets add up to 1. */
  readonly share: number;
  readonly inputs: fc.Arbitrary<Input>;
  open(): Promise<Attack<Input>>;
}
