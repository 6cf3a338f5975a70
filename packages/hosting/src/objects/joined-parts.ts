/** Where a part's bytes lie in the file of joined parts. */
export interface PartPlace extends Disposable {
  readonly offset: number;
  /** The part's own: it never comes to lie elsewhere. */
  keep(): void;
}

/** The name of the file beside an upload's parts. */
export const joinedName = "joined";

/**
 * Parts that come to lie where they will be in the object, so that completing an upload copies nothing. Clients cut objects into parts
 * of one size, all but the last: the first part that comes says which. A place is given once; who cannot have one, because the part
 * was uploaded before, is longer, or comes while the upload is completed, writes a file of its own.
 */
export class JoinedParts {
  readonly #byteLengthMax: number;
  readonly #taken = new Set<number>();
  #partBytes: number | null = null;
  #writerCount = 0;
  #isClosed: boolean;

  /** `isClosed`: no places are given; so for an upload of a previous run. */
  constructor(options: { readonly byteLengthMax: number; readonly isClosed: boolean }) {
    this.#byteLengthMax = options.byteLengthMax;
    this.#isClosed = options.isClosed;
  }

  /** A place for a part of this length, null where it has to have a file of its own. Disposed when it was written. */
  place(partNumber: number, byteLength: number | undefined, partBytesMin: number): PartPlace | null {
    if (this.#isClosed || byteLength === undefined || this.#taken.has(partNumber)) return null;
    if (this.#partBytes === null && byteLength < partBytesMin) return null;
    this.#partBytes ??= byteLength;
    const offset = (partNumber - 1) * this.#partBytes;
    if (byteLength > this.#partBytes || offset + byteLength > this.#byteLengthMax) return null;
    this.#taken.add(partNumber);
    this.#writerCount += 1;
    let [isKept, isWritten] = [false, false];
    return {
      offset,
      keep: () => (isKept = true),
      [Symbol.dispose]: () => {
        if (isWritten) return;
        isWritten = true;
        this.#writerCount -= 1;
        if (!isKept) this.#taken.delete(partNumber);
      },
    };
  }

  /**
   * Whether the file's first bytes are these parts, one behind the other, and nobody writes there any more: no place is given from now
   * on. False changes nothing.
   */
  close(
    parts: readonly {
      readonly partNumber: number;
      readonly byteLength: number;
      readonly offset?: number | undefined;
    }[],
  ): boolean {
    let end = 0;
    for (const { byteLength, offset } of parts) {
      if (offset !== end) return false;
      end += byteLength;
    }
    // Behind the last of them lies nothing: a part that was uploaded and is not asked for would be part of the object.
    if (this.#writerCount > 0 || this.#taken.size !== parts.length) return false;
    this.#isClosed = true;
    return true;
  }
}
