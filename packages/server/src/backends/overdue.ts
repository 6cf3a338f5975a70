import { InferenceError } from "@galatea/base";

/** The error for what was ended because it took longer than its deadline. */
export function overdue(what: string, deadlineMs: number | null): InferenceError {
  return new InferenceError("INTERNAL", `${what} did not end within ${deadlineMs} ms and was ended`);
}
