import { Gate } from "@galatea/base";

/** A holder of models on a node. */
export interface MemoryHolder {
  readonly memoryUsedBytes: number;
  /** Unloads the least recently used idle model; false where there is none. */
  makeRoom(): Promise<boolean>;
}

/** What one holder may have of a node's memory. */
export interface MemoryShare extends Disposable {
  /** Now: what it was promised, and what nobody else has been promised or holds. */
  capacityBytes(): number;
  /** While nobody holds more than promised. */
  mostBytes(): number;
  /** Has another holder unload a model, whoever has most beyond its promise; false where nobody can. */
  makeRoom(): Promise<boolean>;
  /** Something was unloaded, or may be from now on. */
  freed(): void;
  /** Resolves with the next `freed` of anybody. */
  whenFreed(): Promise<void>;
}

export interface NodeMemoryOptions {
  readonly bytesMax: number;
  /** What the containers take themselves, and all that is promised, on the whole node. */
  readonly reservedBytes: () => number;
}

interface Member {
  readonly holder: MemoryHolder;
  readonly promisedBytes: number;
}

/**
 * The memory of one node, for the models of all its multi-model containers together. Each may use up to the size of its instance, which
 * together may be more than there is; so what goes beyond its promise each takes from what is left, or from whoever has most beyond its own.
 */
export class NodeMemory {
  readonly #options: NodeMemoryOptions;
  readonly #members = new Set<Member>();
  readonly #freed = new Gate();

  constructor(options: NodeMemoryOptions) {
    this.#options = options;
  }

  /** To be disposed when the holder has ended. */
  join(holder: MemoryHolder, promisedBytes: number): MemoryShare {
    const member = { holder, promisedBytes };
    this.#members.add(member);
    const mostBytes = () => Math.max(0, this.#options.bytesMax - this.#options.reservedBytes() + promisedBytes);
    return {
      mostBytes,
      capacityBytes: () => {
        let bytes = mostBytes();
        for (const other of this.#members) if (other !== member) bytes -= beyondPromise(other);
        return Math.max(0, bytes);
      },
      makeRoom: async () => {
        const others = [...this.#members].filter((other) => other !== member && beyondPromise(other) > 0);
        for (const other of others.toSorted((a, b) => beyondPromise(b) - beyondPromise(a))) {
          if (await other.holder.makeRoom()) return true;
        }
        return false;
      },
      freed: () => this.#freed.open(),
      whenFreed: () => this.#freed.opened(),
      [Symbol.dispose]: () => {
        this.#members.delete(member);
        this.#freed.open();
      },
    };
  }
}

const beyondPromise = ({ holder, promisedBytes }: Member) => Math.max(0, holder.memoryUsedBytes - promisedBytes);

/** For a model that has no room even where nobody holds more than promised. */
export function missingText(bytes: number, missingBytes: number): string {
  const mebi = 2 ** 20;
  return (
    `The model takes about ${Math.ceil(bytes / mebi)} MiB, and ${Math.ceil(missingBytes / mebi)} MiB of them are missing on the node ` +
    "beside the containers and what GALATEA_MODEL_MEMORY_BYTES promises to other models."
  );
}
