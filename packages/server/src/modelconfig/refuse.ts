import { InferenceError } from "@galatea/base";

/** Throws INVALID_ARG: a rejected configuration is always the caller's error. */
export function refuse(message: string): never {
  throw new InferenceError("INVALID_ARG", message);
}
