import { assert, InferenceError } from "./errors.ts";

/** An owner of idle memory, such as a warm cache, that can release it on request. */
export interface IdleMemory {
  /** Releases up to `bytes`; returns the number released. */
  reclaim(bytes: number): number;
}

/** The fraction of the budget that is reserved for small requests, so that large bodies never block them. */
const smallShare = 1 / 16;
const smallBytesMax = 16 * 1024;

/**
 * A budget for the bytes of all requests and responses in flight: bodies, tensors, text buffered for slow readers. An
 * owner reserves bytes before it allocates them and releases them afterwards. `reserve` never waits: a request that
 * does not fit is rejected at once. Otherwise two partly received requests could wait for each other for ever. This
 * class only counts; it allocates nothing.
 */
export class ByteBudget {
  readonly bytesMax: number;
  /** The limit for requests over `smallBytesMax`. */
  readonly #largeBytesMax: number;
  #usedBytes = 0;
  #idleBytes = 0;
  readonly #idleMemory = new Set<IdleMemory>();

  constructor(bytesMax: number) {
    assert(bytesMax > 0, "a budget of bytes must be above 0");
    this.bytesMax = bytesMax;
    this.#largeBytesMax = bytesMax < Infinity ? bytesMax - Math.floor(bytesMax * smallShare) : Infinity;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  /** Resident bytes that no request uses and that their owner can release. */
  get idleBytes(): number {
    return this.#idleBytes;
  }

  fits(bytes: number): boolean {
    return this.#usedBytes + bytes <= this.#limitFor(bytes);
  }

  /**
   * Reserves `bytes`. If they do not fit, reserves nothing and throws. The error is INVALID_ARG `memory-exceeded` if
   * they can never fit, else UNAVAILABLE `memory-full`.
   */
  reserve(bytes: number): void {
    if (!this.fits(bytes)) throw this.insufficientMemoryError(bytes);
    this.reserveUnchecked(bytes);
  }

  /**
   * Counts bytes that are already allocated, even above the limit. Later requests are rejected until the usage is below
   * the limit again.
   */
  reserveUnchecked(bytes: number): void {
    this.#usedBytes += bytes;
    if (this.#usedBytes + this.#idleBytes > this.bytesMax) this.#reclaim();
  }

  release(bytes: number): void {
    assert(bytes >= 0 && bytes <= this.#usedBytes, "more bytes were released than were reserved");
    this.#usedBytes -= bytes;
  }

  /** Returns the error for a request of `bytes` that does not fit. */
  insufficientMemoryError(bytes: number): InferenceError {
    const boundBytes = this.#limitFor(bytes);
    if (bytes > boundBytes) {
      const text = `${bytes} bytes exceed the memory for all requests in flight, ${boundBytes} bytes; raise --request-memory-bytes`;
      return new InferenceError("INVALID_ARG", text, { reason: "memory-exceeded" });
    }
    const text =
      `memory for requests in flight is full: ${bytes} bytes requested, ${this.#usedBytes} of ${this.bytesMax} bytes in use; ` +
      "retry later or raise --request-memory-bytes";
    return new InferenceError("UNAVAILABLE", text, { reason: "memory-full" });
  }

  #limitFor(bytes: number): number {
    return bytes <= smallBytesMax ? this.bytesMax : this.#largeBytesMax;
  }

  /** Registers `memory` as a source of idle bytes until the result is disposed. */
  addIdleMemory(memory: IdleMemory): Disposable {
    this.#idleMemory.add(memory);
    return { [Symbol.dispose]: () => void this.#idleMemory.delete(memory) };
  }

  /**
   * Counts memory that became idle. A negative number counts idle memory that is used again. Idle memory never causes a
   * rejection, because it is released first.
   */
  addIdleBytes(bytes: number): void {
    this.#idleBytes += bytes;
  }

  /**
   * Releases idle memory until the usage is within the limit. An owner that had nothing to release is asked last the
   * next time.
   */
  #reclaim(): void {
    // Iterates over a copy: an owner that moves to the end is not visited twice.
    for (const memory of Array.from(this.#idleMemory)) {
      const surplus = this.#usedBytes + this.#idleBytes - this.bytesMax;
      if (surplus <= 0) return;
      if (memory.reclaim(surplus) > 0) continue;
      this.#idleMemory.delete(memory);
      this.#idleMemory.add(memory);
    }
  }
}

/**
 * Bytes of a budget that belong to one owner. The owner disposes the lease once it needs none of the bytes any more. A
 * disposed lease cannot reserve bytes.
 */
export class ByteLease implements Disposable {
  readonly #budget: ByteBudget;
  #bytes = 0;
  #disposed = false;

  /** Creates a lease of zero bytes. */
  constructor(budget: ByteBudget) {
    this.#budget = budget;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Returns whether `bytes` could be reserved now. */
  fits(bytes: number): boolean {
    return this.#budget.fits(bytes);
  }

  /**
   * Reserves `bytes` more. Throws as `ByteBudget.reserve` does, and then leaves the lease unchanged. Throws CANCELLED
   * after disposal.
   */
  grow(bytes: number): void {
    if (this.#disposed) throw new InferenceError("CANCELLED", "the request has ended");
    this.#budget.reserve(bytes);
    this.#bytes += bytes;
  }

  /** Adds bytes that are already allocated, even over the budget's limit. */
  growUnchecked(bytes: number): void {
    if (this.#disposed) return;
    this.#budget.reserveUnchecked(bytes);
    this.#bytes += bytes;
  }

  /** Releases bytes so that at most `bytes` remain reserved. */
  shrinkTo(bytes: number): void {
    this.shrinkBy(this.#bytes - bytes);
  }

  /** Releases `bytes`, at most all that the lease has. Does nothing after disposal. */
  shrinkBy(bytes: number): void {
    const input = Math.min(bytes, this.#bytes);
    if (input <= 0) return;
    this.#budget.release(input);
    this.#bytes -= input;
  }

  [Symbol.dispose](): void {
    this.#disposed = true;
    this.shrinkTo(0);
  }
}
