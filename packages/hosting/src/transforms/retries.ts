import { AwsError } from "@galatea/base";

const delayMsMin = 100;
const delayMsMax = 10_000;

/**
 * Returns true if a retry may succeed: the container failed, was too busy, restarted, closed the connection, or was
 * late. Other 4xx responses are final.
 */
export function isRetryable(error: unknown): boolean {
  if (!(error instanceof AwsError)) return true;
  const { OriginalStatusCode: status } = error.members as { readonly OriginalStatusCode?: number };
  return status === undefined || status === 0 || status === 429 || status >= 500;
}

/** Returns the delay before a retry in milliseconds. It doubles with each attempt, up to a maximum. */
export function transformRetryDelayMs(attempt: number): number {
  return Math.min(delayMsMax, delayMsMin * 2 ** attempt);
}
