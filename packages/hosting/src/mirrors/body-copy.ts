import { Transform, type Readable } from "node:stream";
import type { MirrorLease } from "./mirror-account.ts";

/** More than an invocation may be asked or answer at once; a stream of events may go on for minutes. */
const bodyBytesMax = 8 * 2 ** 20;

/** The bytes of a body that passes, in the pieces that it came in. */
export class BodyCopy {
  readonly #lease: MirrorLease;
  #pieces: Buffer[] = [];
  #heldBytes = 0;
  #hasRoom = true;
  #isWhole = false;

  constructor(lease: MirrorLease) {
    this.#lease = lease;
  }

  /** Nothing where there was no room for all of it. */
  get pieces(): readonly Buffer[] {
    return this.#pieces;
  }

  /** Whether the body has passed to its end. */
  get isWhole(): boolean {
    return this.#isWhole;
  }

  /** Whether there was room for all that came. */
  get hasRoom(): boolean {
    return this.#hasRoom;
  }

  /**
   * The body, to be taken instead of what is given. `ended` is called once, for bytes that are there before this returns. What takes the body may leave it before its end; then `abandon` is called with what was given.
   */
  watch(
    body: Buffer | Readable,
    then: { readonly ended: () => void; readonly abandon: (body: Readable) => void },
  ): Buffer | Readable {
    if (Buffer.isBuffer(body)) {
      this.#add(body);
      this.#isWhole = true;
      then.ended();
      return body;
    }
    const passing = new Transform({
      transform: (piece: Buffer, _encoding, done) => {
        this.#add(piece);
        done(null, piece);
      },
      flush: (done) => {
        this.#isWhole = true;
        done();
      },
    });
    // Whoever takes the body hears of its errors, and may have left.
    passing.on("error", () => {});
    passing.once("close", () => {
      if (!this.#isWhole && !body.destroyed) {
        body.unpipe(passing);
        then.abandon(body);
      }
      then.ended();
    });
    body.once("error", (error) => passing.destroy(error));
    body.once("close", () => {
      if (!body.readableEnded) passing.destroy(new Error("the body ended before its end"));
    });
    body.pipe(passing);
    return passing;
  }

  #add(piece: Buffer): void {
    if (!this.#hasRoom) return;
    const heldBytes = isMostOfItsMemory(piece) ? piece.buffer.byteLength : piece.length;
    if (this.#heldBytes + heldBytes > bodyBytesMax || !this.#lease.keep(heldBytes)) {
      this.#hasRoom = false;
      this.#pieces = [];
      this.#lease.give(this.#heldBytes);
      return;
    }
    this.#heldBytes += heldBytes;
    this.#pieces.push(isMostOfItsMemory(piece) ? piece : ownCopy(piece));
  }
}

/** A view keeps all of the memory that it is a view of: a short one of a long one is better copied. */
function isMostOfItsMemory(piece: Buffer): boolean {
  return piece.buffer.byteLength <= piece.length + piece.length / 4 + 256;
}

function ownCopy(piece: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(piece.length);
  piece.copy(copy);
  return copy;
}
