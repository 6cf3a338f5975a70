import type { Clock, Logger } from "@galatea/base";
import type { MemoryHolder, MemoryShare } from "../nodes/index.ts";
import type { ModelCacheLimits } from "./model-cache-limits.ts";
import type { ModelCacheObserver, ModelContainer } from "./model-container.ts";
import type { ArchiveSource } from "./model-source.ts";
import type { ModelTrees } from "./model-trees.ts";

export interface ModelCacheOptions {
  readonly trees: ModelTrees;
  readonly limits: ModelCacheLimits;
  readonly source: ArchiveSource;
  /** Resolves with the container when it is up. */
  readonly container: (signal: AbortSignal) => Promise<ModelContainer>;
  readonly observer: ModelCacheObserver;
  /** What its models may have of the node, beside all others; closed with the cache. */
  readonly joinMemory: (cache: MemoryHolder) => MemoryShare;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A loaded model that stays loaded until released. */
export interface ModelCacheLease extends Disposable {
  readonly id: string;
  /** Whether it was loaded when asked for. */
  readonly cacheHit: boolean;
  readonly waitedUs: number;
}
