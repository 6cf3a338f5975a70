import type { Clock, Logger } from "@galatea/base";
import type { EvictableModelCache, MemoryShare } from "../nodes/index.ts";
import type { ModelCacheLimits } from "./model-cache-limits.ts";
import type { ModelCacheObserver, ModelContainer } from "./model-container.ts";
import type { UnpackedModels } from "./model-trees.ts";

export interface ModelCacheOptions {
  readonly trees: UnpackedModels;
  readonly limits: ModelCacheLimits;
  /** Resolves with the container once it is in service. */
  readonly container: (signal: AbortSignal) => Promise<ModelContainer>;
  readonly observer: ModelCacheObserver;
  /**
   * Adds the cache to the node's memory, which all model caches of the node share. The cache disposes the returned
   * share.
   */
  readonly joinMemory: (cache: EvictableModelCache) => MemoryShare;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A loaded model that stays loaded until released. */
export interface ModelCacheLease extends Disposable {
  readonly id: string;
  /** True if the model was already loaded when it was requested. */
  readonly cacheHit: boolean;
  readonly waitedUs: number;
}
