import type { Readable } from "node:stream";

/**
 * Minimum size of buffers that are freed explicitly. The garbage collector frees smaller ones, because freeing one explicitly takes as long
 * as copying some kilobytes.
 */
const freedBytesMin = 16 * 1024;

/**
 * Frees the read buffers of a connection as soon as their bytes were consumed, so that the allocator reuses the memory for the next read.
 * Without this, each read adds 64 KiB that only the garbage collector frees, and it marks the whole heap after every 8 MB. With requests of
 * 1 MB, that took more than half of the CPU time (bench/rows/large-messages.ts).
 *
 * node:http2 cuts the contents of DATA frames from a read buffer and pushes them to their streams, one slice after another. A buffer may be
 * freed if each of its slices was consumed during its push; therefore all streams of the connection are watched. The buffer is freed when
 * the first slice of the next buffer is pushed, because until then the HTTP/2 library may still use the remaining bytes.
 */
export class ReadBuffers {
  /** The buffer whose slices are being pushed. */
  #buffer: ArrayBufferLike | null = null;
  /** The last buffer before the connection's last call ended. The weak reference does not prevent its garbage collection. */
  #last: WeakRef<ArrayBufferLike> | null = null;
  /** True if a slice of the buffer was not consumed during its push. */
  #isHeld = false;
  /** True if slices were pushed to a stream before it was watched. Buffers are then never freed explicitly. */
  #hasMissedSlices = false;
  #pushed: Uint8Array | null = null;

  /** Records the slices that are pushed to `stream`. Must be called before anything is pushed to the stream. */
  watch(stream: Readable): void {
    if (stream.readableLength > 0) this.#hasMissedSlices = true;
    const push = stream.push.bind(stream);
    stream.push = (chunk: Uint8Array | null, encoding?: BufferEncoding): boolean => {
      if (chunk === null) return push(chunk, encoding);
      this.#onPush(chunk);
      const wantsMore = push(chunk, encoding);
      if (this.#pushed === chunk) this.#isHeld = true;
      this.#pushed = null;
      return wantsMore;
    };
  }

  #onPush(slice: Uint8Array): void {
    this.#pushed = slice;
    const before = this.#buffer ?? this.#last?.deref() ?? null;
    this.#last = null;
    this.#buffer = slice.buffer;
    if (before === slice.buffer) return;
    if (before !== null && isLarge(before) && !this.#isHeld && !this.#hasMissedSlices) before.transfer(0);
    this.#isHeld = false;
  }

  /**
   * Reports that a slice was consumed and has no references. A slice that is not reported during its push prevents the release of its
   * buffer.
   */
  consumed(slice: Uint8Array): void {
    if (slice === this.#pushed) this.#pushed = null;
  }

  /** Leaves the last buffer to the garbage collector, because a connection without calls would otherwise keep it. */
  forget(): void {
    if (this.#buffer !== null && isLarge(this.#buffer)) this.#last = new WeakRef(this.#buffer);
    this.#buffer = null;
  }
}

function isLarge(buffer: ArrayBufferLike): buffer is ArrayBuffer {
  return buffer instanceof ArrayBuffer && buffer.byteLength >= freedBytesMin;
}
