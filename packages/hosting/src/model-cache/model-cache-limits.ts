export interface ModelCacheLimits {
  /** Disk for unpacked archives; equal files count once. */
  readonly diskBytesMax: number;
  /** Memory for loaded models. */
  readonly memoryBytesMax: number;
  readonly loadsMax: number;
  /** Requests that may wait for cold models at a time. */
  readonly waitersMax: number;
  /** Maximum wait of a request for a model to load; after it the request is rejected with ModelNotReadyError. */
  readonly waitMsMax: number;
  readonly loadMsMax: number;
  readonly unloadMsMax: number;
  /** The delay before a failed unload is tried again. */
  readonly unloadRetryMs: number;
  /** ModelCacheSetting Enabled. When false, a model is removed from memory and disk after its last request. */
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
