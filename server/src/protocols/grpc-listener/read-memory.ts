import type { Readable } from "node:stream";

/** The length of an HTTP/2 frame's head, which lies between the contents of two consecutive DATA frames. */
const frameHeadBytes = 9;
/** Smaller buffers are left to the garbage collector: freeing one takes as long as copying some kilobytes. */
const freedBytesMin = 16 * 1024;

/**
 * Frees the buffers that a connection's bytes are read into as soon as nothing refers to their bytes, so that the allocator hands
 * the same memory to the next read. The collector alone would see 64 KiB for each read and, after 8 MB of them, mark the whole heap: at 1 MB
 * a request that took more than half of all processor time (bench/rows/large-messages.ts).
 *
 * node:http2 cuts the contents of DATA frames from the buffer of a read and pushes them to their streams, each before the next. A
 * buffer is freed where these slices, consumed as they were pushed, and the frame heads between them are all that lies in it: then no
 * other stream can have a slice, however slowly it is read. It is freed when the next buffer's first slice is pushed, not before: until then
 * the HTTP/2 library may have the rest of it before it.
 */
export class ReadMemory {
  /** The buffer whose slices are being pushed. */
  #buffer: ArrayBufferLike | null = null;
  /** The offset up to which the buffer holds only frame heads and consumed slices; NaN where it holds anything else. */
  #consumedTo = 0;
  #pushed: Uint8Array | null = null;

  /** Records which slices are pushed to `stream`, and when. */
  watch(stream: Readable): void {
    const push = stream.push.bind(stream);
    stream.push = (chunk: Uint8Array | null, encoding?: BufferEncoding): boolean => {
      if (chunk === null) return push(chunk, encoding);
      this.#onPush(chunk);
      const wantsMore = push(chunk, encoding);
      if (this.#pushed === chunk) this.#consumedTo = Number.NaN;
      this.#pushed = null;
      return wantsMore;
    };
  }

  #onPush(slice: Uint8Array): void {
    this.#pushed = slice;
    if (slice.buffer === this.#buffer) return;
    this.#free();
    this.#buffer = slice.buffer;
    this.#consumedTo = 0;
  }

  /** Takes back a slice to which nothing refers. One that was not consumed as it was pushed stays as it is, and its buffer with it. */
  consumed(slice: Uint8Array): void {
    if (slice !== this.#pushed) return;
    this.#pushed = null;
    const { byteOffset, byteLength } = slice;
    const gapBytes = byteOffset - this.#consumedTo;
    // What continues a frame begins a buffer; before it may lie the rest of a frame's head.
    const follows = this.#consumedTo === 0 ? gapBytes <= frameHeadBytes : gapBytes === frameHeadBytes;
    this.#consumedTo = follows ? byteOffset + byteLength : Number.NaN;
  }

  /** Leaves the last buffer to the collector: a connection without calls would keep it for nothing. */
  forget(): void {
    this.#buffer = null;
  }

  #free(): void {
    const buffer = this.#buffer;
    if (!(buffer instanceof ArrayBuffer) || buffer.byteLength < freedBytesMin) return;
    if (buffer.byteLength - this.#consumedTo <= frameHeadBytes) buffer.transfer(0);
  }
}
