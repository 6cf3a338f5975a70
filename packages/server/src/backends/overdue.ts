import { InferenceError } from "@galatea/base";

/** Returns the error of an execution that was ended because it exceeded its deadline. */
export function overdue(what: string, deadlineMs: number | null): InferenceError {
  return new InferenceError("INTERNAL", `${what} did not end within ${deadlineMs} ms and was ended`);
}
