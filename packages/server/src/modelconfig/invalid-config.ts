import { InferenceError } from "@galatea/base";

/** Throws INVALID_ARG for an invalid configuration. */
export function throwInvalidConfig(message: string): never {
  throw new InferenceError("INVALID_ARG", message);
}
