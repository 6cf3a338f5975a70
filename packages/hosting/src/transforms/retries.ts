import { AwsError } from "@galatea/base";

const delayMsMin = 100;
const delayMsMax = 10_000;

/**
 * Whether an answer may be another one when the same is asked again: the container failed or is too busy, was being started again, broke
 * off or was late. What a container refuses as the client's fault it refuses again.
 */
export function mayDiffer(error: unknown): boolean {
  if (!(error instanceof AwsError)) return true;
  const { OriginalStatusCode: status } = error.members as { readonly OriginalStatusCode?: number };
  return status === undefined || status === 0 || status === 429 || status >= 500;
}

/** Twice as long after each attempt. */
export function retryDelayMs(attempt: number): number {
  return Math.min(delayMsMax, delayMsMin * 2 ** attempt);
}
