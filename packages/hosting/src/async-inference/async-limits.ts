export interface AsyncLimits {
  /** Waiting and running requests of one endpoint, and the bytes of their inputs that are not in S3. */
  readonly requestsMax: number;
  readonly inlineBytesMax: number;
  /** Limits over all endpoints. */
  readonly allRequestsMax: number;
  readonly allInlineBytesMax: number;
  readonly runningMax: number;
  /** Maximum size of each input and response. */
  readonly bodyBytesMax: number;
  /** Polling interval for changes without an event: instances that start, requests that expire. */
  readonly lookMs: number;
  readonly sampleMs: number;
  /** Pause after a full disk or a lack of memory; doubled each time, up to a maximum. */
  readonly pauseMsMin: number;
  readonly pauseMsMax: number;
}

export const asyncLimits: AsyncLimits = {
  requestsMax: 100_000,
  inlineBytesMax: 256 * 2 ** 20,
  allRequestsMax: 500_000,
  allInlineBytesMax: 2 ** 30,
  runningMax: 512,
  bodyBytesMax: 2 ** 30,
  lookMs: 1000,
  sampleMs: 20_000,
  pauseMsMin: 1000,
  pauseMsMax: 30_000,
};

/** Concurrent requests per instance where the endpoint configuration sets none. */
export const concurrencyDefault = 4;
export const ttlSecondsDefault = 21_600;
export const timeLimitSecondsDefault = 900;
