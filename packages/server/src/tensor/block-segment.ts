import { assert } from "@galatea/base";
import type { Block } from "./tensor.ts";

/** A segment of a block. While the segment has references, it holds one reference to the block. */
export class BlockSegment implements Block {
  readonly #complete: Block;
  readonly #at: number;
  readonly byteLength: number;
  #references = 1;
  #bytes: Uint8Array | null = null;

  constructor(complete: Block, byteOffset: number, byteLength: number) {
    assert(
      byteOffset >= 0 && byteLength >= 0 && byteOffset + byteLength <= complete.byteLength,
      "a part within its block",
    );
    complete.retain();
    this.#complete = complete;
    this.#at = byteOffset;
    this.byteLength = byteLength;
  }

  get arenaId(): number {
    return this.#complete.arenaId;
  }

  get byteOffset(): number {
    return this.#complete.byteOffset + this.#at;
  }

  get bytes(): Uint8Array {
    assert(this.#references > 0, "bytes of a part after its release");
    this.#bytes ??= this.#complete.bytes.subarray(this.#at, this.#at + this.byteLength);
    return this.#bytes;
  }

  get referenceCount(): number {
    return this.#references;
  }

  retain(): void {
    assert(this.#references > 0, "retain of a released part");
    this.#references++;
  }

  release(): void {
    assert(this.#references > 0, "release of a released part");
    if (--this.#references === 0) this.#complete.release();
  }

  segment(byteOffset: number, byteLength: number): Block {
    return new BlockSegment(this, byteOffset, byteLength);
  }
}
