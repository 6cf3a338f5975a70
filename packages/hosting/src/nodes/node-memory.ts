import { ChangeNotifier } from "@galatea/base";

/** The interface of a model cache that `NodeMemory` uses. */
export interface EvictableModelCache {
  readonly memoryUsedBytes: number;
  /** Unloads the least recently used idle model. Resolves with false if no model is idle. */
  evictIdleModel(): Promise<boolean>;
}

/** The part of a node's memory that one model cache may use. Dispose it when the cache is closed. */
export interface MemoryShare extends Disposable {
  /** Returns the bytes that the cache's models may use now: its guarantee, plus node memory that other caches neither use nor have guaranteed. */
  availableBytes(): number;
  /** Returns the bytes that the cache's models could use if every other cache used at most its guarantee. */
  maximumBytes(): number;
  /** Unloads one idle model of another cache, starting with the cache that is furthest above its guarantee. Resolves with false if no cache can unload a model. */
  evictFromOtherCache(): Promise<boolean>;
  /** Notifies waiting caches that a model of this cache was unloaded or became idle. */
  notifyFreed(): void;
  /** Resolves at the next `notifyFreed` of any cache. */
  whenFreed(): Promise<void>;
}

export interface NodeMemoryOptions {
  readonly bytesMax: number;
  /** Returns the bytes that all containers of the node use without models, plus all guarantees. */
  readonly reservedBytes: () => number;
}

interface Member {
  readonly cache: EvictableModelCache;
  readonly guaranteedBytes: number;
}

/**
 * Divides the memory of one node between the model caches of its multi-model containers. Each cache has a guarantee (`guaranteedBytes`) and may use more, up
 * to the size of its instance. The sum of the instance sizes may exceed the node's memory. A cache above its guarantee uses free memory; if none is free, it
 * evicts models of the cache that is furthest above its guarantee.
 */
export class NodeMemory {
  readonly #options: NodeMemoryOptions;
  readonly #members = new Set<Member>();
  readonly #freed = new ChangeNotifier();

  constructor(options: NodeMemoryOptions) {
    this.#options = options;
  }

  /** Adds a model cache. Dispose the share when the cache has ended. */
  addCache(cache: EvictableModelCache, guaranteedBytes: number): MemoryShare {
    const member = { cache, guaranteedBytes };
    this.#members.add(member);
    const maximumBytes = () => Math.max(0, this.#options.bytesMax - this.#options.reservedBytes() + guaranteedBytes);
    return {
      maximumBytes,
      availableBytes: () => {
        let bytes = maximumBytes();
        for (const other of this.#members) if (other !== member) bytes -= aboveGuarantee(other);
        return Math.max(0, bytes);
      },
      evictFromOtherCache: async () => {
        const others = [...this.#members].filter((other) => other !== member && aboveGuarantee(other) > 0);
        for (const other of others.toSorted((a, b) => aboveGuarantee(b) - aboveGuarantee(a))) {
          if (await other.cache.evictIdleModel()) return true;
        }
        return false;
      },
      notifyFreed: () => this.#freed.notify(),
      whenFreed: () => this.#freed.nextChange(),
      [Symbol.dispose]: () => {
        this.#members.delete(member);
        this.#freed.notify();
      },
    };
  }
}

const aboveGuarantee = ({ cache, guaranteedBytes }: Member) => Math.max(0, cache.memoryUsedBytes - guaranteedBytes);

/** Returns the error text for a model that does not fit even if every other cache uses only its guarantee. */
export function notEnoughMemoryText(bytes: number, freeBytes: number): string {
  const mebi = 2 ** 20;
  return (
    `Not enough memory: the model needs about ${Math.ceil(bytes / mebi)} MiB and ${Math.floor(freeBytes / mebi)} MiB are free on the node ` +
    "(the rest is reserved by other containers and by GALATEA_MODEL_MEMORY_BYTES)."
  );
}
