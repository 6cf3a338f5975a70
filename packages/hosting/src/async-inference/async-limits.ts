/** The limits of asynchronous inference. */
export interface AsyncLimits {
  /** Maximum number of waiting and running requests of one endpoint, and the maximum bytes of their inputs that are not in S3. */
  readonly requestsMax: number;
  readonly inlineBytesMax: number;
  /** Maximum number of requests, and maximum bytes of their inputs, of all endpoints together. */
  readonly allRequestsMax: number;
  readonly allInlineBytesMax: number;
  readonly runningMax: number;
  /** Maximum bytes of each input and of each response. */
  readonly bodyBytesMax: number;
  /** Interval at which queues check for expired requests and for instances that have started, in milliseconds. */
  readonly pollMs: number;
  /** Interval between samples of the queue metrics, in milliseconds. */
  readonly sampleMs: number;
  /** Minimum and maximum pause of a queue after a temporary failure, such as a full disk. Each repeated failure doubles the pause. */
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
  pollMs: 1000,
  sampleMs: 20_000,
  pauseMsMin: 1000,
  pauseMsMax: 30_000,
};

/** Default of MaxConcurrentInvocationsPerInstance. */
export const invocationsPerInstanceDefault = 4;
export const ttlSecondsDefault = 21_600;
export const timeLimitSecondsDefault = 900;
