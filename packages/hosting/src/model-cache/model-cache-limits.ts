export interface ModelCacheLimits {
  /** Disk space for unpacked archives, in bytes. Identical files are counted once. */
  readonly diskBytesMax: number;
  /** Memory for loaded models, in bytes. */
  readonly memoryBytesMax: number;
  readonly loadsMax: number;
  /** Maximum number of requests that wait for cold models at the same time. */
  readonly waitersMax: number;
  /** Maximum milliseconds that a request waits for a load; then the request is rejected with ModelNotReadyError. */
  readonly waitMsMax: number;
  readonly loadMsMax: number;
  readonly unloadMsMax: number;
  /** Milliseconds before a failed unload is retried. */
  readonly unloadRetryMs: number;
  /** SageMaker's `ModelCacheSetting`. If false, a model is removed from memory and disk after its last request. */
  readonly keepsModels: boolean;
}

export const modelCacheLimits = {
  loadsMax: 4,
  waitersMax: 1000,
  waitMsMax: 55_000,
  loadMsMax: 360_000,
  unloadMsMax: 360_000,
  unloadRetryMs: 1000,
  keepsModels: true,
} as const;
