import { Transform, type Readable } from "node:stream";
import type { MirrorLease } from "./mirror-memory.ts";

/**
 * Maximum bytes of one copy. It exceeds the size of any buffered request or response, but bounds the copy of a stream
 * of events, which may last minutes.
 */
const bodyBytesMax = 8 * 2 ** 20;

/** Copies a body while its consumer reads it, in the original chunks. The copy is empty if memory ran out. */
export class BodyCopy {
  readonly #lease: MirrorLease;
  #segments: Buffer[] = [];
  #heldBytes = 0;
  #hasRoom = true;
  #isWhole = false;

  constructor(lease: MirrorLease) {
    this.#lease = lease;
  }

  /** The copied chunks; empty if there was not enough memory for all of them. */
  get pieces(): readonly Buffer[] {
    return this.#segments;
  }

  /** True after the consumer has received the complete body. */
  get isWhole(): boolean {
    return this.#isWhole;
  }

  /** True if there was memory for all chunks so far. */
  get hasSpace(): boolean {
    return this.#hasRoom;
  }

  /**
   * Returns a body that replaces the given one and fills this copy while it is read. Calls `ended` once; for a buffer,
   * before this method returns. If the consumer stops before the end, calls `abandon` with the given body.
   */
  tee(
    body: Buffer | Readable,
    then: { readonly ended: () => void; readonly abandon: (body: Readable) => void },
  ): Buffer | Readable {
    if (Buffer.isBuffer(body)) {
      this.#add(body);
      this.#isWhole = true;
      then.ended();
      return body;
    }
    const copying = new Transform({
      transform: (chunk: Buffer, _encoding, done) => {
        this.#add(chunk);
        done(null, chunk);
      },
      flush: (done) => {
        this.#isWhole = true;
        done();
      },
    });
    // The consumer may have stopped. Without a listener, an error would end the process.
    copying.on("error", () => {});
    copying.once("close", () => {
      if (!this.#isWhole && !body.destroyed) {
        body.unpipe(copying);
        then.abandon(body);
      }
      then.ended();
    });
    body.once("error", (error) => copying.destroy(error));
    body.once("close", () => {
      if (!body.readableEnded) copying.destroy(new Error("the body was cut short"));
    });
    body.pipe(copying);
    return copying;
  }

  #add(chunk: Buffer): void {
    if (!this.#hasRoom) return;
    const heldBytes = isMostOfItsMemory(chunk) ? chunk.buffer.byteLength : chunk.length;
    if (this.#heldBytes + heldBytes > bodyBytesMax || !this.#lease.keep(heldBytes)) {
      this.#hasRoom = false;
      this.#segments = [];
      this.#lease.shrink(this.#heldBytes);
      return;
    }
    this.#heldBytes += heldBytes;
    this.#segments.push(isMostOfItsMemory(chunk) ? chunk : ownCopy(chunk));
  }
}

/**
 * Returns true if a view covers most of its underlying buffer. A view keeps the whole buffer alive, so short views of
 * large buffers are copied.
 */
function isMostOfItsMemory(chunk: Buffer): boolean {
  return chunk.buffer.byteLength <= chunk.length + chunk.length / 4 + 256;
}

function ownCopy(chunk: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(chunk.length);
  chunk.copy(copy);
  return copy;
}
