import type { ByteLease } from "./byte-budget.ts";
import { AwsError, InferenceError } from "./errors.ts";

/**
 * Reserves memory for the bytes of a call before they arrive. If there is not enough memory, throws an error that AWS
 * clients retry.
 */
export function reserveCallMemory(memory: ByteLease, bytes: number): void {
  try {
    memory.grow(bytes);
  } catch (error) {
    if (!(error instanceof InferenceError)) throw error;
    const isPassing = error.reason === "memory-full";
    throw new AwsError(isPassing ? "ServiceUnavailable" : "RequestEntityTooLargeException", error.message, {
      statusFallback: isPassing ? 503 : 413,
      cause: error,
    });
  }
}
