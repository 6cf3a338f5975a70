import type { Datatype } from "./datatype.ts";

/** A range of shared memory: the arena and the offset in it. Other threads and processes receive this instead of the bytes. */
export interface ArenaRange {
  readonly arenaId: number;
  readonly byteOffset: number;
  readonly byteLength: number;
}

/**
 * A reference-counted range of shared memory that contains tensors. Created with one reference, owned by the caller. The last `release`
 * frees the bytes. A caller must not use `bytes` after it has released its reference.
 */
export interface Block extends ArenaRange {
  readonly bytes: Uint8Array;
  /** Number of references, including those of workers. If it is 1, only the caller uses these bytes and may overwrite them. */
  readonly referenceCount: number;
  retain(): void;
  release(): void;
  /**
   * Returns a segment of the block with its own reference count. The segment keeps the whole block allocated until it has no references.
   * Created with one reference, owned by the caller. Segments must not overlap, and a block with segments must not be read as a whole.
   */
  segment(byteOffset: number, byteLength: number): Block;
}

/** The description of a tensor without its elements. */
export interface TensorHead {
  readonly name: string;
  readonly datatype: Datatype;
  readonly shape: readonly number[];
}

/**
 * A tensor. `data` contains the elements, little-endian, row-major and packed (BYTES: uint32 length + bytes each), as a view of a request
 * body, an arena block, or plain memory. `block` is the arena block that contains `data`, or null. `shape` includes the batch dimension, if
 * any. The owner of a tensor owns one reference to `block`.
 */
export interface Tensor extends TensorHead {
  readonly data: Uint8Array;
  readonly block: Block | null;
}

/** Returns the product of the dimensions; 1 for a scalar. Negative dimensions are a bug of the caller. */
export function elementCount(shape: readonly number[]): number {
  let count = 1;
  for (const dimension of shape) count *= dimension;
  return count;
}

/** Releases the references that the caller owns. */
export function releaseTensors(tensors: readonly Tensor[]): void {
  for (const tensor of tensors) tensor.block?.release();
}
