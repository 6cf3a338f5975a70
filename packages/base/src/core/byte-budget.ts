import { assert, InferenceError } from "./errors.ts";

/** Somebody who keeps memory that is not in use, because it is warm, and can give it back. */
export interface IdleMemory {
  /** Gives back about `bytes`, as far as it has them; returns how many it gave. */
  reclaim(bytes: number): number;
}

/** The part of a budget that is left to those who take little at a time: large bodies never keep small requests out. */
const smallShare = 1 / 16;
const smallBytesMax = 16 * 1024;

/**
 * The bytes that requests and answers in flight may take together: bodies, tensors, texts on their way to slow readers. Whoever holds such
 * bytes takes them here first and gives them back when they are gone. Nobody waits: who cannot have what it needs is refused at once, so
 * that two requests that hold half of what they need never wait for each other. Pure accounting; nothing is allocated here.
 */
export class ByteBudget {
  readonly bytesMax: number;
  /** Up to here for what takes more than a little at a time. */
  readonly #largeBytesMax: number;
  #usedBytes = 0;
  #idleBytes = 0;
  readonly #idleMemory = new Set<IdleMemory>();

  constructor(bytesMax: number) {
    assert(bytesMax > 0, "a budget of bytes is above 0");
    this.bytesMax = bytesMax;
    this.#largeBytesMax = bytesMax < Infinity ? bytesMax - Math.floor(bytesMax * smallShare) : Infinity;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** Memory that is resident and in nobody's use. */
  get idleBytes(): number {
    return this.#idleBytes;
  }

  fits(bytes: number): boolean {
    return this.#usedBytes + bytes <= this.#boundOf(bytes);
  }

  /** Takes `bytes`, or takes nothing and throws: UNAVAILABLE with the reason `memory-full`, or `memory-exceeded` for more than there ever is. */
  take(bytes: number): void {
    if (!this.fits(bytes)) throw this.refusal(bytes);
    this.takeAnyway(bytes);
  }

  /** For bytes that are there already and cannot be refused any more; what comes next is refused until they are gone. */
  takeAnyway(bytes: number): void {
    this.#usedBytes += bytes;
    if (this.#usedBytes + this.#idleBytes > this.bytesMax) this.#reclaim();
  }

  give(bytes: number): void {
    assert(bytes >= 0 && bytes <= this.#usedBytes, "more bytes were given back than were taken");
    this.#usedBytes -= bytes;
  }

  /** The error for whoever was refused `bytes`. */
  refusal(bytes: number): InferenceError {
    const boundBytes = this.#boundOf(bytes);
    if (bytes > boundBytes) {
      const text = `${bytes} bytes exceed the memory for all requests in flight, ${boundBytes} bytes; raise --request-memory-bytes`;
      return new InferenceError("INVALID_ARG", text, { reason: "memory-exceeded" });
    }
    const text =
      `memory for requests in flight is full: ${bytes} bytes requested, ${this.#usedBytes} of ${this.bytesMax} bytes in use; ` +
      "ask again later or raise --request-memory-bytes";
    return new InferenceError("UNAVAILABLE", text, { reason: "memory-full" });
  }

  #boundOf(bytes: number): number {
    return bytes <= smallBytesMax ? this.bytesMax : this.#largeBytesMax;
  }

  /** From now on `memory` may be asked to give back what it keeps idle. */
  addIdleMemory(memory: IdleMemory): Disposable {
    this.#idleMemory.add(memory);
    return { [Symbol.dispose]: () => void this.#idleMemory.delete(memory) };
  }

  /** Counts memory that became idle (or, below 0, is idle no more). What is idle never keeps a request out: it is given back first. */
  addIdleBytes(bytes: number): void {
    this.#idleBytes += bytes;
  }

  /** Whoever had nothing to give is asked after the others the next time. */
  #reclaim(): void {
    // A copy: whoever moves to the end must not be met again.
    for (const memory of Array.from(this.#idleMemory)) {
      const surplus = this.#usedBytes + this.#idleBytes - this.bytesMax;
      if (surplus <= 0) return;
      if (memory.reclaim(surplus) > 0) continue;
      this.#idleMemory.delete(memory);
      this.#idleMemory.add(memory);
    }
  }
}

/** Bytes of a budget with one owner, who disposes it when the last of them is gone. Disposed, it takes none any more. */
export class ByteLease implements Disposable {
  readonly #budget: ByteBudget;
  #bytes = 0;
  #disposed = false;

  /** A lease of no bytes. */
  constructor(budget: ByteBudget) {
    this.#budget = budget;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Whether so many more bytes could be taken now. */
  fits(bytes: number): boolean {
    return this.#budget.fits(bytes);
  }

  /** Throws as ByteBudget.take does; then the lease is as it was. CANCELLED when the owner has disposed it meanwhile. */
  grow(bytes: number): void {
    if (this.#disposed) throw new InferenceError("CANCELLED", "the request has ended");
    this.#budget.take(bytes);
    this.#bytes += bytes;
  }

  /** For bytes that are there already. */
  growAnyway(bytes: number): void {
    if (this.#disposed) return;
    this.#budget.takeAnyway(bytes);
    this.#bytes += bytes;
  }

  /** Gives all but `bytes` back; does nothing when it has no more than those. */
  shrinkTo(bytes: number): void {
    this.shrinkBy(this.#bytes - bytes);
  }

  /** Gives so many back; none are left where the owner has ended it meanwhile. */
  shrinkBy(bytes: number): void {
    const given = Math.min(bytes, this.#bytes);
    if (given <= 0) return;
    this.#budget.give(given);
    this.#bytes -= given;
  }

  [Symbol.dispose](): void {
    this.#disposed = true;
    this.shrinkTo(0);
  }
}
