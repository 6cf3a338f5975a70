import type * as fc from "fast-check";

/** An open target, which is attacked. */
export interface Attack<Input> extends AsyncDisposable {
  /**
   * Returns whether the input was accepted and not rejected as documented. Throws for any other result, and if memory
   * or files are left.
   */
  attempt(input: Input): boolean | Promise<boolean>;
}

/** An interface that accepts input from untrusted clients. */
export interface FuzzTarget<Input = unknown> {
  readonly name: string;
  readonly about: string;
  /** Share of a run's inputs for this target; the shares of all targets add up to 1. */
  readonly share: number;
  readonly inputs: fc.Arbitrary<Input>;
  open(): Promise<Attack<Input>>;
}
