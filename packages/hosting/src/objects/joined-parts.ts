/** The location of a part in the file of joined parts. Dispose it after the write. */
export interface PartSlot extends Disposable {
  readonly offset: number;
  /** Marks the part as written, so that the location is not assigned again. */
  keep(): void;
}

/** Name of the file of joined parts in an upload's folder. */
export const joinedFileName = "joined";

/**
 * Assigns parts to their final offsets in one file, so that completing an upload copies nothing. Clients split objects
 * into parts of equal size, except the last part. The first part that arrives determines this size. Each offset is
 * assigned once. A part is written to a separate file if it is longer, was uploaded before, or arrives during the
 * completion.
 */
export class JoinedParts {
  readonly #byteLengthMax: number;
  readonly #acquired = new Set<number>();
  #partBytes: number | null = null;
  #writerCount = 0;
  #isClosed: boolean;

  /** `isClosed`: true for an upload of a previous run, whose new parts all get separate files. */
  constructor(options: { readonly byteLengthMax: number; readonly isClosed: boolean }) {
    this.#byteLengthMax = options.byteLengthMax;
    this.#isClosed = options.isClosed;
  }

  /**
   * Returns the location for a part of this length; null if the part needs a separate file. The caller disposes it
   * after the write.
   */
  slot(partNumber: number, byteLength: number | undefined, partBytesMin: number): PartSlot | null {
    if (this.#isClosed || byteLength === undefined || this.#acquired.has(partNumber)) return null;
    if (this.#partBytes === null && byteLength < partBytesMin) return null;
    this.#partBytes ??= byteLength;
    const offset = (partNumber - 1) * this.#partBytes;
    if (byteLength > this.#partBytes || offset + byteLength > this.#byteLengthMax) return null;
    this.#acquired.add(partNumber);
    this.#writerCount += 1;
    let [isKept, isWritten] = [false, false];
    return {
      offset,
      keep: () => (isKept = true),
      [Symbol.dispose]: () => {
        if (isWritten) return;
        isWritten = true;
        this.#writerCount -= 1;
        if (!isKept) this.#acquired.delete(partNumber);
      },
    };
  }

  /**
   * Returns true if the file consists of exactly these parts and no write is in progress; no more locations are
   * assigned then. Returns false and changes nothing otherwise.
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
    // The file must contain no other part: an uploaded part that the client does not list would become part of the
    // object.
    if (this.#writerCount > 0 || this.#acquired.size !== parts.length) return false;
    this.#isClosed = true;
    return true;
  }
}
