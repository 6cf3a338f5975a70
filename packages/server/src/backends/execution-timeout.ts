import { InferenceError } from "@galatea/base";

/** Returns the error of an execution that was ended because it exceeded its time limit. */
export function executionTimeout(what: string, deadlineMs: number | null): InferenceError {
  return new InferenceError("INTERNAL", `${what} did not end within ${deadlineMs} ms and was ended`);
}
