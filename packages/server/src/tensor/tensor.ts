import type { Datatype } from "./datatype.ts";

/** Where a piece of shared memory lies: which arena, and where in it. What another thread or process is told instead of the bytes. */
export interface ArenaPlace {
  readonly arenaId: number;
  readonly byteOffset: number;
  readonly byteLength: number;
}

/**
 * A piece of shared memory that tensors lie in, counted by its users. Made with one reference, owned by the caller.
 * `release` by the last user gives the bytes back; using `bytes` after one's own release is a bug.
 */
export interface Block extends ArenaPlace {
  readonly bytes: Uint8Array;
  /** References now, its loans to workers among them. 1: nobody but the asker reads these bytes. */
  readonly holderCount: number;
  retain(): void;
  release(): void;
  /**
   * A piece of it as a block with users of its own, which keep the whole. Made with one reference, owned by the caller; pieces do not
   * overlap, and what is held in pieces is not read as a whole.
   */
  part(byteOffset: number, byteLength: number): Block;
}

/** What is said of a tensor beside its elements. */
export interface TensorHead {
  readonly name: string;
  readonly datatype: Datatype;
  readonly shape: readonly number[];
}

/**
 * The one tensor type. `data` holds the elements little-endian, row-major and packed (BYTES: uint32 length + bytes each),
 * as a view: of a request body, of an arena block, or of plain memory. `block` is the arena block that `data` lies in,
 * null elsewhere; then `data` is a sub-view of `block.bytes`. `shape` includes the batch dimension where there is one.
 * Whoever owns the tensor owns one reference to `block`.
 */
export interface Tensor extends TensorHead {
  readonly data: Uint8Array;
  readonly block: Block | null;
}

/** Product of the dimensions; 1 for a scalar. Negative dimensions are a caller's bug. */
export function elementCount(shape: readonly number[]): number {
  let count = 1;
  for (const dimension of shape) count *= dimension;
  return count;
}

/** Gives up the references that owning these tensors means. */
export function releaseTensors(tensors: readonly Tensor[]): void {
  for (const tensor of tensors) tensor.block?.release();
}
