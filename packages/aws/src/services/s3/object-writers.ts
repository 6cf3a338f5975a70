import { AwsError, EventLoopQueue, type Clock } from "@galatea/base";
import type { CountedStore } from "@galatea/hosting/objects";

/**
 * Header under which an object stores the name of its writer, if the writer has a quota. Responses never contain it.
 */
export const writerHeader = "x-galatea-writer";

export interface WriterQuotasOptions {
  readonly store: Pick<CountedStore, "kept">;
  /** Returns the writer that has the key; null for the owner, who has no quota. Error texts show the writer's name. */
  readonly writerOf: (accessKeyId: string) => string | null;
  /** Maximum bytes of all objects and unfinished uploads of one writer. */
  readonly bytesMax: number;
  readonly clock: Clock;
}

/** Space that is reserved for a write. Disposal releases the reservation unless `commit` was called. */
export interface ObjectReservation extends Disposable {
  /** Headers that are stored with the object. */
  readonly headers: Readonly<Record<string, string>>;
  /** Counts the space as used. The caller calls this once the object is written. */
  commit(): void;
}

/** The reservation for writes of the owner, who has no quota. */
export const unlimitedReservation: ObjectReservation = { headers: {}, commit() {}, [Symbol.dispose]() {} };

/** Disk and memory that an object, an upload or a part uses in addition to its bytes. */
const descriptionBytes = 4096;
const perTurn = 1000;
/**
 * Ratio of the pause after a count of all objects to the duration of the count. It limits counting to about a twentieth
 * of the time, even if a writer without free space retries often.
 */
const restsPerCount = 20;

/**
 * The space that each writer with a quota uses in the store. Only an object's description names its writer. All objects
 * are counted when a writer is first seen, and when a writer seems to have reached its quota. Between two counts,
 * writes are added, but deletions are not subtracted. A writer that overwrites or deletes objects may therefore see too
 * little free space until the next count, but never too much.
 */
export class WriterQuotas {
  readonly #options: WriterQuotasOptions;
  readonly #loopQueue = new EventLoopQueue();
  /** Bytes by writer at the last count; null before the first count. */
  #counted: ReadonlyMap<string, number> | null = null;
  /** Bytes by writer that were written since the last count started. */
  #since = new Map<string, number>();
  readonly #underWay = new Map<string, number>();
  #counting: Promise<void> | null = null;
  #nextCountNs = 0;

  constructor(options: WriterQuotasOptions) {
    this.#options = options;
  }

  /** Reserves space; `byteLength` is null if the size is unknown. Throws above the writer's quota. */
  async reserve(accessKeyId: string | null, byteLength: number | null): Promise<ObjectReservation> {
    const { writerOf, bytesMax, clock } = this.#options;
    const writer = accessKeyId === null ? null : writerOf(accessKeyId);
    if (writer === null) return unlimitedReservation;
    if (byteLength === null) {
      const text = "You must provide the Content-Length HTTP header.";
      throw new AwsError("MissingContentLength", text, { statusFallback: 411 });
    }
    const desired = byteLength + descriptionBytes;
    if (this.#counted === null || this.#counting !== null) await this.#count();
    if (this.#bytesOf(writer) + desired > bytesMax && clock.monotonicNs() >= this.#nextCountNs) await this.#count();
    const kept = this.#bytesOf(writer);
    if (kept + desired > bytesMax) {
      const text =
        `The quota of '${writer}' in the object store is exceeded: ${kept} bytes are stored (with ${descriptionBytes} for the metadata of each object), ` +
        `${desired} more were requested, and the limit is ${bytesMax} bytes`;
      throw new AwsError("InsufficientStorage", text, { statusFallback: 507 });
    }
    add(this.#underWay, writer, desired);
    let isUnderWay = true;
    const disconnect = () => {
      if (isUnderWay) add(this.#underWay, writer, -desired);
      isUnderWay = false;
    };
    return {
      headers: { [writerHeader]: writer },
      commit: () => {
        if (isUnderWay) add(this.#since, writer, desired);
        disconnect();
      },
      [Symbol.dispose]: disconnect,
    };
  }

  #bytesOf(writer: string): number {
    return [this.#counted, this.#since, this.#underWay].reduce((sum, bytes) => sum + (bytes?.get(writer) ?? 0), 0);
  }

  /** Counts all objects. All waiting callers share one count. */
  #count(): Promise<void> {
    this.#counting ??= this.#countAll().finally(() => (this.#counting = null));
    return this.#counting;
  }

  async #countAll(): Promise<void> {
    const { store, clock } = this.#options;
    const startedNs = clock.monotonicNs();
    const never = new AbortController().signal;
    const before = this.#since;
    const since = new Map<string, number>();
    // Until the next count, a write during the count may be counted twice.
    this.#since = since;
    this.#counted = sumOf(this.#counted, before);
    const counted = new Map<string, number>();
    let seen = 0;
    for (const { headers, byteLength, fileCount } of store.kept()) {
      if (++seen % perTurn === 0) await this.#loopQueue.next(never);
      const writer = headers[writerHeader];
      if (writer !== undefined) add(counted, writer, byteLength + fileCount * descriptionBytes);
    }
    this.#counted = counted;
    const endedNs = clock.monotonicNs();
    this.#nextCountNs = endedNs + restsPerCount * (endedNs - startedNs);
  }
}

function add(bytes: Map<string, number>, writer: string, more: number): void {
  const sum = (bytes.get(writer) ?? 0) + more;
  if (sum > 0) bytes.set(writer, sum);
  else bytes.delete(writer);
}

function sumOf(a: ReadonlyMap<string, number> | null, b: ReadonlyMap<string, number>): ReadonlyMap<string, number> {
  const sum = new Map(a);
  for (const [writer, bytes] of b) add(sum, writer, bytes);
  return sum;
}
