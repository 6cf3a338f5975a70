import { AwsError, EventLoopQueue, type Clock } from "@galatea/base";
import type { BucketStore } from "@galatea/hosting/objects";

/** Kept with an object that was written by somebody whose room is bounded, and given back to nobody. */
export const writerHeader = "x-galatea-writer";

export interface ObjectWritersOptions {
  readonly store: Pick<BucketStore, "kept">;
  /** Who may keep only so much, by the key that signs; null for the owner. Names that a person knows. */
  readonly writerOf: (accessKeyId: string) => string | null;
  /** Of all objects and unfinished uploads of one writer. */
  readonly bytesMax: number;
  readonly clock: Clock;
}

/** Room for what is about to be written. Disposing gives it back where it was not kept. */
export interface UploadSlot extends Disposable {
  /** Headers that are stored with what is written. */
  readonly headers: Readonly<Record<string, string>>;
  /** It was written. */
  keep(): void;
}

/** That of the owner. */
export const unbounded: UploadSlot = { headers: {}, keep() {}, [Symbol.dispose]() {} };

/** What an object, an upload or a part takes beside its bytes: a block of the disk, and its description in memory. */
const descriptionBytes = 4096;
const perTurn = 1000;
/** Counting takes a twentieth of the time at most, however often somebody without room asks. */
const restsPerCount = 20;

/**
 * How much each bounded writer keeps in the store. Whoever wrote an object stands in its description, so nothing of this is kept
 * elsewhere. All is counted when a writer is first seen and when one seems to have no room left; between two counts only what is written
 * is added, so that who overwrites or deletes is told to have less room than there is until the next count, and never more.
 */
export class ObjectWriters {
  readonly #options: ObjectWritersOptions;
  readonly #loopQueue = new EventLoopQueue();
  /** By the last count. */
  #counted: ReadonlyMap<string, number> | null = null;
  /** Written since the last count began. */
  #since = new Map<string, number>();
  readonly #underWay = new Map<string, number>();
  #counting: Promise<void> | null = null;
  #nextCountNs = 0;

  constructor(options: ObjectWritersOptions) {
    this.#options = options;
  }

  /** `byteLength` of null: nobody knows how much will come. Throws where the writer has no room for it. */
  async take(accessKeyId: string | null, byteLength: number | null): Promise<UploadSlot> {
    const { writerOf, bytesMax, clock } = this.#options;
    const writer = accessKeyId === null ? null : writerOf(accessKeyId);
    if (writer === null) return unbounded;
    if (byteLength === null) {
      const text = "You must provide the Content-Length HTTP header.";
      throw new AwsError("MissingContentLength", text, { statusFallback: 411 });
    }
    const wanted = byteLength + descriptionBytes;
    if (this.#counted === null || this.#counting !== null) await this.#count();
    if (this.#bytesOf(writer) + wanted > bytesMax && clock.monotonicNs() >= this.#nextCountNs) await this.#count();
    const kept = this.#bytesOf(writer);
    if (kept + wanted > bytesMax) {
      const text =
        `The code of '${writer}' keeps ${kept} bytes in the object store, ${descriptionBytes} for each description among them. ` +
        `With ${wanted} more it would have more than the ${bytesMax} that it may have`;
      throw new AwsError("InsufficientStorage", text, { statusFallback: 507 });
    }
    add(this.#underWay, writer, wanted);
    let isUnderWay = true;
    const leave = () => {
      if (isUnderWay) add(this.#underWay, writer, -wanted);
      isUnderWay = false;
    };
    return {
      headers: { [writerHeader]: writer },
      keep: () => {
        if (isUnderWay) add(this.#since, writer, wanted);
        leave();
      },
      [Symbol.dispose]: leave,
    };
  }

  #bytesOf(writer: string): number {
    return [this.#counted, this.#since, this.#underWay].reduce((sum, bytes) => sum + (bytes?.get(writer) ?? 0), 0);
  }

  /** One count for all who wait for it. */
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
    // What is written while this counts may be counted twice: that lasts until the next count.
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
