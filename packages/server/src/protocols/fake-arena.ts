import { type ByteBudget, InferenceError } from "@galatea/base";
import { BlockSegment, type Arena, type Block, type Tensor } from "../tensor/index.ts";

/** Counts references as the arena does and poisons what was given back, so that a read after release shows. */
export class FakeArena implements Arena {
  readonly id = 1;
  readonly fd = -1;
  readonly capacityBytes: number;
  usedBytes = 0;

  readonly #budget: ByteBudget;
  /** Each block has a place of its own, which is never taken again. */
  #nextOffset = 0;

  readonly #memory: SharedArrayBuffer | null;

  /** `memory` is for tests whose threads share it; without it each block has its own. */
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
      get holderCount() {
        return references;
      },
      part: (at, partBytes) => new BlockSegment(block, at, partBytes),
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

/** A copy of `data` in the arena, as a worker's output would lie there. */
export function arenaTensor(arena: FakeArena, tensor: Omit<Tensor, "block">): Tensor {
  if (tensor.data.length === 0) return { ...tensor, block: null };
  const block = arena.allocate(tensor.data.length);
  block.bytes.set(tensor.data);
  return { ...tensor, data: block.bytes, block };
}
