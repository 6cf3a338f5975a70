import { Transform, type Readable } from "node:stream";
import type { MirrorLease } from "./mirror-memory.ts";

/** Above the size of a buffered request or response; a stream of events may take minutes. */
const bodyBytesMax = 8 * 2 ** 20;

/** Copies a body while its reader reads it, in the original chunks. The copy is empty if memory ran out. */
export class BodyCopy {
  readonly #lease: MirrorLease;
  #pieces: Buffer[] = [];
  #heldBytes = 0;
  #hasRoom = true;
  #isWhole = false;

  constructor(lease: MirrorLease) {
    this.#lease = lease;
  }

  /** Empty if there was no memory for all of it. */
  get pieces(): readonly Buffer[] {
    return this.#pieces;
  }

  /** True once the body has passed completely. */
  get isWhole(): boolean {
    return this.#isWhole;
  }

  /** True if there was memory for all chunks so far. */
  get hasSpace(): boolean {
    return this.#hasRoom;
  }

  /**
   * Returns the body to use in place of the given one. Calls `ended` once; before this returns for bytes that exist
   * already. If the reader leaves before the end, calls `abandon` with the given body.
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
      transform: (piece: Buffer, _encoding, done) => {
        this.#add(piece);
        done(null, piece);
      },
      flush: (done) => {
        this.#isWhole = true;
        done();
      },
    });
    // The reader of the body may have left, and an error without a listener would end the process.
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

  #add(piece: Buffer): void {
    if (!this.#hasRoom) return;
    const heldBytes = isMostOfItsMemory(piece) ? piece.buffer.byteLength : piece.length;
    if (this.#heldBytes + heldBytes > bodyBytesMax || !this.#lease.keep(heldBytes)) {
      this.#hasRoom = false;
      this.#pieces = [];
      this.#lease.shrink(this.#heldBytes);
      return;
    }
    this.#heldBytes += heldBytes;
    this.#pieces.push(isMostOfItsMemory(piece) ? piece : ownCopy(piece));
  }
}

/** A view keeps all of its underlying memory alive: a short view of a large buffer is copied instead. */
function isMostOfItsMemory(piece: Buffer): boolean {
  return piece.buffer.byteLength <= piece.length + piece.length / 4 + 256;
}

function ownCopy(piece: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(piece.length);
  piece.copy(copy);
  return copy;
}
