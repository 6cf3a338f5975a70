export interface ModelCacheLimits {
  /** Disk for unpacked archives; equal files count once. */
  readonly diskBytesMax: number;
  /** Memory for loaded models. */
  readonly memoryBytesMax: number;
  readonly loadsMax: number;
  /** Requests that may wait for cold models at a time. */
  readonly waitersMax: number;
  /** How long a request waits for a cold model before it is told so. */
  readonly waitMsMax: number;
  readonly loadMsMax: number;
  readonly unloadMsMax: number;
  /** An unload that failed is tried again after this time. */
  readonly unloadRetryMs: number;
  /** How old the store's answer about a loaded model may be; 0 asks at each invocation (the local store answers from memory). */
  readonly headAgeMsMax: number;
  /** Otherwise a model leaves memory and disk with the last request that holds it. */
  readonly keepsModels: boolean;
}

export const modelCacheLimits = {
  loadsMax: 4,
  waitersMax: 1000,
  waitMsMax: 55_000,
  loadMsMax: 360_000,
  unloadMsMax: 360_000,
  unloadRetryMs: 1000,
  headAgeMsMax: 0,
  keepsModels: true,
} as const;
