import { assert } from "@galatea/base";
import type { Block } from "../../tensor/index.ts";
import { MalformedRecord, type WireLent } from "./wire.ts";

/** `input`: read by the worker, back when it says so. `space`: for one execution's outputs, back with its result. */
export interface LentBlock extends WireLent {
  readonly block: Block;
  readonly executionId: number;
  readonly use: "input" | "space";
}

/**
 * What one worker has been lent. A loan holds one reference to its block until the worker gives it back or has been reaped;
 * nothing else ends it: not the request, not its deadline, not the end of the execution.
 */
export class LentBlocks {
  readonly #lent = new Map<number, LentBlock>();
  #lastId = 0;

  get count(): number {
    return this.#lent.size;
  }

  /**
   * Takes over one reference to the block. An input with other holders at this moment is lent as shared. One without is the model's to
   * write to, and stays so: whoever reads a request's tensors later holds them before the request is handed over.
   */
  lend(block: Block, executionId: number, use: LentBlock["use"], isShared = false): LentBlock {
    // Ids may be used again after 2^30 loans: whatever then still is lent is skipped.
    do this.#lastId = (this.#lastId + 1) & 0x3fff_ffff;
    while (this.#lent.has(this.#lastId));
    const lentId = this.#lastId;
    const lent: LentBlock = {
      lentId,
      block,
      executionId,
      use,
      isShared,
      byteOffset: block.byteOffset,
      byteLength: block.byteLength,
    };
    this.#lent.set(lentId, lent);
    return lent;
  }

  /** The block that a result places a tensor in; only what was lent for that very execution. */
  find(lentId: number, executionId: number): LentBlock {
    const lent = this.#lent.get(lentId);
    if (lent === undefined || lent.executionId !== executionId)
      throw new MalformedRecord(`a tensor in block ${lentId}, which execution ${executionId} was not lent`);
    return lent;
  }

  /** A block that the worker reads: what it may hand on to another model. */
  input(lentId: number): LentBlock {
    const lent = this.#lent.get(lentId);
    if (lent?.use !== "input") throw new MalformedRecord(`a tensor in block ${lentId}, which is not lent`);
    return lent;
  }

  /** The worker says that no view of these is left. */
  giveBack(lentIds: readonly number[]): void {
    for (const lentId of lentIds) {
      const lent = this.#lent.get(lentId);
      if (lent?.use !== "input") throw new MalformedRecord(`release of block ${lentId}, which is not lent`);
      this.#end(lent);
    }
  }

  /** Never sent: an execution that could not be put together. */
  takeBack(loans: readonly LentBlock[]): void {
    for (const lent of loans) this.#end(lent);
  }

  /** The execution has ended: its space is no longer the worker's to write. */
  endSpaces(spaces: readonly LentBlock[]): void {
    for (const lent of spaces) {
      assert(lent.use === "space", "only space ends with its execution");
      if (this.#lent.has(lent.lentId)) this.#end(lent);
    }
  }

  /** The process has been reaped: nobody reads or writes any of it. */
  endAll(): void {
    for (const lent of this.#lent.values()) this.#end(lent);
  }

  #end(lent: LentBlock): void {
    this.#lent.delete(lent.lentId);
    lent.block.release();
  }
}
