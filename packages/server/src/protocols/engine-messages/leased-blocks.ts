import { assert } from "@galatea/base";
import type { Block, ArenaRange } from "../../tensor/index.ts";

/** The references to blocks that the engine has on behalf of a front end, by arena range. */
export class LeasedBlocks {
  readonly #held = new Map<string, Block[]>();

  get count(): number {
    let count = 0;
    for (const blocks of this.#held.values()) count += blocks.length;
    return count;
  }

  /** Stores a reference to a block on behalf of the front end. */
  lend(block: Block): void {
    const key = keyOf(block);
    const blocks = this.#held.get(key);
    if (blocks === undefined) this.#held.set(key, [block]);
    else blocks.push(block);
  }

  /** Releases a reference on behalf of the front end. */
  release(location: ArenaRange): void {
    const key = keyOf(location);
    const blocks = this.#held.get(key);
    assert(blocks !== undefined, "a front end releases what it was lent");
    blocks.pop()!.release();
    if (blocks.length === 0) this.#held.delete(key);
  }

  /** Returns a new reference, owned by the engine, to a range to which the front end has a reference: a block or a segment of one. */
  take(location: ArenaRange): Block {
    const exact = this.#held.get(keyOf(location))?.[0];
    if (exact !== undefined) {
      exact.retain();
      return exact;
    }
    const complete = this.#around(location);
    return complete.segment(location.byteOffset - complete.byteOffset, location.byteLength);
  }

  /** Returns the bytes of a range, for tests in which the front end has no mapping of the arena. */
  bytesAt(location: ArenaRange): Uint8Array {
    const block = this.#held.get(keyOf(location))?.[0];
    assert(block !== undefined, "a front end sees what it was lent");
    return block.bytes;
  }

  #around({ arenaId, byteOffset, byteLength }: ArenaRange): Block {
    for (const [block] of this.#held.values()) {
      const isIn =
        block?.arenaId === arenaId &&
        block.byteOffset <= byteOffset &&
        byteOffset + byteLength <= block.byteOffset + block.byteLength;
      if (isIn) return block;
    }
    throw new Error(`bug: nothing at ${byteOffset} of arena ${arenaId} was lent to the front end`);
  }
}

function keyOf({ arenaId, byteOffset, byteLength }: ArenaRange): string {
  return `${arenaId}/${byteOffset}/${byteLength}`;
}
