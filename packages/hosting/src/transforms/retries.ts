import { AwsError } from "@galatea/base";

const delayMsMin = 100;
const delayMsMax = 10_000;

/**
 * Returns whether a retry may succeed: the container failed, is too busy, was restarting, broke off or was late. A
 * rejection as the client's fault is final.
 */
export function isRetryable(error: unknown): boolean {
  if (!(error instanceof AwsError)) return true;
  const { OriginalStatusCode: status } = error.members as { readonly OriginalStatusCode?: number };
  return status === undefined || status === 0 || status === 429 || status >= 500;
}

/** Returns a delay that doubles with each attempt. */
export function transformRetryDelayMs(attempt: number): number {
  return Math.min(delayMsMax, delayMsMin * 2 ** attempt);
}
