import type { Block } from "./tensor.ts";

/** An allocator of tensor memory: the interface of an arena for the protocols. */
export interface BlockSource {
  /** Number of allocated bytes. */
  readonly usedBytes: number;
  /** Allocates a block of at least `byteLength` bytes whose `bytes` view is exactly that long. The content is undefined. */
  allocate(byteLength: number): Block;
}

/**
 * Shared memory of one namespace over an anonymous memory file, which workers map too. Only the server allocates from it. Created by
 * `createArena`. Its capacity is fixed: `allocate` throws InferenceError("UNAVAILABLE", ...) when the arena is full.
 */
export interface Arena extends BlockSource, Disposable {
  readonly id: number;
  /** File descriptor of the memory file in this process, which child processes inherit. */
  readonly fd: number;
  readonly capacityBytes: number;
}
