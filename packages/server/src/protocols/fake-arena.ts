import { type ByteBudget, InferenceError } from "@galatea/base";
import { BlockSegment, type Arena, type Block, type Tensor } from "../tensor/index.ts";

/** An arena for tests. It counts references, and overwrites released memory so that a read after release fails the test. */
export class FakeArena implements Arena {
  readonly id = 1;
  readonly fd = -1;
  readonly capacityBytes: number;
  usedBytes = 0;

  readonly #budget: ByteBudget;
  /** Offset of the next block. Offsets are never reused. */
  #nextOffset = 0;

  readonly #memory: SharedArrayBuffer | null;

  /** By default, each block has its own memory. Some tests pass `memory`, which they share between threads. */
  constructor(capacityBytes: number, budget: ByteBudget, memory: SharedArrayBuffer | null = null) {
    this.capacityBytes = capacityBytes;
    this.#memory = memory;
    this.#budget = budget;
  }

  allocate(byteLength: number): Block {
    if (this.usedBytes + byteLength > this.capacityBytes) {
      throw new InferenceError("UNAVAILABLE", `arena of ${this.capacityBytes} bytes is full`);
    }
    this.#budget.reserve(byteLength);
    this.usedBytes += byteLength;
    const byteOffset = this.#nextOffset;
    this.#nextOffset += byteLength;
    const bytes =
      this.#memory === null ? new Uint8Array(byteLength) : new Uint8Array(this.#memory, byteOffset, byteLength);
    let references = 1;
    const block: Block = {
      arenaId: this.id,
      byteOffset,
      byteLength,
      bytes,
      get referenceCount() {
        return references;
      },
      segment: (at, partBytes) => new BlockSegment(block, at, partBytes),
      retain: () => {
        if (references === 0) throw new Error("bug: retain of a released block");
        references++;
      },
      release: () => {
        if (references === 0) throw new Error("bug: block released twice");
        if (--references > 0) return;
        this.usedBytes -= byteLength;
        this.#budget.release(byteLength);
        bytes.fill(0xdb);
      },
    };
    return block;
  }

  [Symbol.dispose](): void {}
}

/** Copies a tensor to the arena, as the output of a worker. */
export function arenaTensor(arena: FakeArena, tensor: Omit<Tensor, "block">): Tensor {
  if (tensor.data.length === 0) return { ...tensor, block: null };
  const block = arena.allocate(tensor.data.length);
  block.bytes.set(tensor.data);
  return { ...tensor, data: block.bytes, block };
}
