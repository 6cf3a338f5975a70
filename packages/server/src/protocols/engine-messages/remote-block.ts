import { assert } from "@galatea/base";
import { BlockSegment, type Block, type ArenaRange } from "../../tensor/index.ts";

/**
 * A front end's reference to a block of the engine. It counts the references within the front end; the last release returns the reference
 * to the engine.
 */
export class RemoteBlock implements Block {
  readonly arenaId: number;
  readonly byteOffset: number;
  readonly byteLength: number;
  readonly #bytes: Uint8Array;
  readonly #giveBack: () => void;
  #references = 1;

  constructor({ arenaId, byteOffset, byteLength }: ArenaRange, bytes: Uint8Array, giveBack: () => void) {
    this.arenaId = arenaId;
    this.byteOffset = byteOffset;
    this.byteLength = byteLength;
    this.#bytes = bytes;
    this.#giveBack = giveBack;
  }

  get bytes(): Uint8Array {
    assert(this.#references > 0, "bytes of a block after its release");
    return this.#bytes;
  }

  get referenceCount(): number {
    return this.#references;
  }

  retain(): void {
    assert(this.#references > 0, "retain of a released block");
    this.#references++;
  }

  release(): void {
    assert(this.#references > 0, "release of a released block");
    if (--this.#references === 0) this.#giveBack();
  }

  segment(byteOffset: number, byteLength: number): Block {
    return new BlockSegment(this, byteOffset, byteLength);
  }
}
