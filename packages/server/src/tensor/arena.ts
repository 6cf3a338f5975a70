import type { Block } from "./tensor.ts";

/** An allocator of tensor memory: the part of an arena that front ends use. */
export interface BlockSource {
  /** Number of allocated bytes. */
  readonly usedBytes: number;
  /** Allocates a block of at least `byteLength` bytes whose `bytes` view is exactly that long. The content is undefined. */
  allocate(byteLength: number): Block;
}

/**
 * Shared memory of one namespace, allocated by the server only. Created by `createArena` over an anonymous memory file; workers map the
 * same file. `allocate` throws InferenceError("UNAVAILABLE", ...) when the arena is full: it never grows.
 */
export interface Arena extends BlockSource, Disposable {
  readonly id: number;
  /** The memory file's descriptor in this process, which children inherit. */
  readonly fd: number;
  readonly capacityBytes: number;
}
