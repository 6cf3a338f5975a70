import { InferenceError } from "@galatea/base";

/** Every refusal of a configuration is the caller's mistake. */
export function refuse(message: string): never {
  throw new InferenceError("INVALID_ARG", message);
}
