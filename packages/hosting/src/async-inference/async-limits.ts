export interface AsyncLimits {
  /** Requests of one endpoint that wait or run, and their inputs that are not in S3. */
  readonly requestsMax: number;
  readonly inlineBytesMax: number;
  /** Of all endpoints together. */
  readonly allRequestsMax: number;
  readonly allInlineBytesMax: number;
  readonly runningMax: number;
  /** Of each input and answer. */
  readonly bodyBytesMax: number;
  /** Between looks at what no event tells of: instances that come up, requests that expire. */
  readonly lookMs: number;
  readonly sampleMs: number;
  /** After a disk was full, or there was no memory: doubled each time, up to a bound. */
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

/** Requests at once to an instance whose endpoint does not say it. */
export const concurrencyDefault = 4;
export const ttlSecondsDefault = 21_600;
export const timeLimitSecondsDefault = 900;
