import type { Readable } from "node:stream";

/** Smaller buffers are left to the garbage collector: freeing one takes as long as copying some kilobytes. */
const freedBytesMin = 16 * 1024;

/**
 * Frees the buffers that a connection's bytes are read into as soon as nothing refers to their bytes, so that the allocator hands
 * the same memory to the next read. The collector alone would see 64 KiB for each read and, after 8 MB of them, mark the whole heap: at 1 MB
 * a request that took more than half of all processor time (bench/rows/large-messages.ts).
 *
 * node:http2 cuts the contents of DATA frames from the buffer of a read and pushes them to their streams, each before the next. A
 * buffer is freed if every slice of it was consumed as it was pushed. All streams of the connection have to be watched, because each of
 * them may have a slice. The buffer is freed when the next buffer's first slice is pushed, not before: until then the HTTP/2 library may
 * have the rest of it before it.
 */
export class ReadMemory {
  /** The buffer whose slices are being pushed. */
  #buffer: ArrayBufferLike | null = null;
  /** The last buffer of a connection without calls. */
  #last: WeakRef<ArrayBufferLike> | null = null;
  /** True if a slice of the buffer was not consumed as it was pushed. */
  #isHeld = false;
  /** True if slices were pushed to a stream before it was watched: then no buffer is known to be unused. */
  #hasMissedSlices = false;
  #pushed: Uint8Array | null = null;

  /** Records which slices are pushed to `stream`, and when. Called before anything is pushed to it. */
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

  /** Accepts a slice without references. One that was not consumed as it was pushed keeps its buffer. */
  consumed(slice: Uint8Array): void {
    if (slice === this.#pushed) this.#pushed = null;
  }

  /** Leaves the last buffer to the garbage collector: a connection without calls would keep it unused. */
  forget(): void {
    if (this.#buffer !== null && isLarge(this.#buffer)) this.#last = new WeakRef(this.#buffer);
    this.#buffer = null;
  }
}

function isLarge(buffer: ArrayBufferLike): buffer is ArrayBuffer {
  return buffer instanceof ArrayBuffer && buffer.byteLength >= freedBytesMin;
}
