import type { Datatype } from "./datatype.ts";

/** The location of a range of shared memory: the arena and the offset in it. Sent to other threads and processes instead of the bytes. */
export interface ArenaRange {
  readonly arenaId: number;
  readonly byteOffset: number;
  readonly byteLength: number;
}

/**
 * A reference-counted range of shared memory that contains tensors. Created with one reference, owned by the caller. The last `release`
 * frees the bytes; using `bytes` after one's own release is a bug.
 */
export interface Block extends ArenaRange {
  readonly bytes: Uint8Array;
  /** Number of references, including those of workers. With 1, only the caller reads these bytes. */
  readonly holderCount: number;
  retain(): void;
  release(): void;
  /**
   * Returns a segment of the block with its own references, which keep the whole block. Created with one reference, owned by the caller.
   * Segments must not overlap, and a block in segments must not be read as a whole.
   */
  part(byteOffset: number, byteLength: number): Block;
}

/** The description of a tensor without its elements. */
export interface TensorHead {
  readonly name: string;
  readonly datatype: Datatype;
  readonly shape: readonly number[];
}

/**
 * A tensor. `data` has the elements little-endian, row-major and packed (BYTES: uint32 length + bytes each), as a view of a request body,
 * an arena block, or plain memory. `block` is the arena block of `data`, null elsewhere; then `data` is a sub-view of `block.bytes`.
 * `shape` includes the batch dimension, if any. The owner of a tensor owns one reference to `block`.
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

/** Releases the references of tensors that the caller owns. */
export function releaseTensors(tensors: readonly Tensor[]): void {
  for (const tensor of tensors) tensor.block?.release();
}
