import { ChangeNotifier } from "@galatea/base";

/** A model cache, as far as `NodeMemory` uses it. */
export interface MemoryHolder {
  readonly memoryUsedBytes: number;
  /** Unloads the least recently used idle model; false where there is none. */
  makeRoom(): Promise<boolean>;
}

/** The share of one model cache in the memory of its node. */
export interface MemoryShare extends Disposable {
  /** Returns the bytes that its models may use now: its guarantee, and memory that others neither use nor have guaranteed. */
  capacityBytes(): number;
  /** Returns the bytes that its models could use if every other cache kept within its guarantee. */
  mostBytes(): number;
  /** Unloads one idle model of another cache, first of the one that is furthest above its guarantee. Resolves with false when none can unload. */
  makeRoom(): Promise<boolean>;
  /** Reports that a model was unloaded, or that one became idle. */
  freed(): void;
  /** Resolves at the next `freed` of any share. */
  whenFreed(): Promise<void>;
}

export interface NodeMemoryOptions {
  readonly bytesMax: number;
  /** Returns the memory of the node that containers use without models, plus all guarantees. */
  readonly reservedBytes: () => number;
}

interface Member {
  readonly holder: MemoryHolder;
  readonly guaranteedBytes: number;
}

/**
 * Divides the memory of one node between the model caches of its multi-model containers. Each has a guarantee (`guaranteedBytes`) and may use
 * more, up to the size of its instance. The sum of those sizes may exceed the node: bytes above a guarantee come from free memory, or from the
 * cache that is furthest above its own guarantee.
 */
export class NodeMemory {
  readonly #options: NodeMemoryOptions;
  readonly #members = new Set<Member>();
  readonly #freed = new ChangeNotifier();

  constructor(options: NodeMemoryOptions) {
    this.#options = options;
  }

  /** Adds a model cache. Dispose the share when the cache has ended. */
  join(holder: MemoryHolder, guaranteedBytes: number): MemoryShare {
    const member = { holder, guaranteedBytes };
    this.#members.add(member);
    const mostBytes = () => Math.max(0, this.#options.bytesMax - this.#options.reservedBytes() + guaranteedBytes);
    return {
      mostBytes,
      capacityBytes: () => {
        let bytes = mostBytes();
        for (const other of this.#members) if (other !== member) bytes -= aboveGuarantee(other);
        return Math.max(0, bytes);
      },
      makeRoom: async () => {
        const others = [...this.#members].filter((other) => other !== member && aboveGuarantee(other) > 0);
        for (const other of others.toSorted((a, b) => aboveGuarantee(b) - aboveGuarantee(a))) {
          if (await other.holder.makeRoom()) return true;
        }
        return false;
      },
      freed: () => this.#freed.notify(),
      whenFreed: () => this.#freed.nextChange(),
      [Symbol.dispose]: () => {
        this.#members.delete(member);
        this.#freed.notify();
      },
    };
  }
}

const aboveGuarantee = ({ holder, guaranteedBytes }: Member) => Math.max(0, holder.memoryUsedBytes - guaranteedBytes);

/** Returns the error of a model that does not fit even if every other cache keeps within its guarantee. */
export function notEnoughMemoryText(bytes: number, freeBytes: number): string {
  const mebi = 2 ** 20;
  return (
    `Not enough memory: the model needs about ${Math.ceil(bytes / mebi)} MiB and ${Math.floor(freeBytes / mebi)} MiB are free on the node ` +
    "(the rest is reserved by other containers and by GALATEA_MODEL_MEMORY_BYTES)."
  );
}
