import type { Block } from "./tensor.ts";

/** Where the tensors of requests are put: all that a front end sees of an arena. */
export interface BlockSource {
  /** Bytes in blocks now. */
  readonly usedBytes: number;
  /** A block of at least `byteLength` bytes whose `bytes` view is exactly that long. Contents are undefined. */
  allocate(byteLength: number): Block;
}

/**
 * Shared memory of one namespace, allocated by the server only. Made by `createArena` over an anonymous memory file;
 * workers map the same file. `allocate` throws InferenceError("UNAVAILABLE", ...) when the arena is full: back-pressure, not growth.
 */
export interface Arena extends BlockSource, Disposable {
  readonly id: number;
  /** The memory file's descriptor in this process, for handing to children. */
  readonly fd: number;
  readonly capacityBytes: number;
}
