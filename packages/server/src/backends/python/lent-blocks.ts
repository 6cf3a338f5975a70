import { assert, RecyclingMap } from "@galatea/base";
import type { Block } from "../../tensor/index.ts";
import { MalformedRecord, type WireLent } from "./wire.ts";

/**
 * A block that is lent to a worker. `input`: the worker reads the block until it releases it. `space`: memory for the outputs of one
 * execution, lent until that execution's result.
 */
export interface LentBlock extends WireLent {
  readonly block: Block;
  readonly executionId: number;
  readonly use: "input" | "space";
}

/**
 * The blocks that one worker may access. Each lent block has one reference until the worker releases it, or until the worker was reaped.
 * The end of a request or an execution does not release a block, because the worker may still access it.
 */
export class LentBlocks {
  readonly #lent = new RecyclingMap<LentBlock>();
  #lastId = 0;

  get count(): number {
    return this.#lent.size;
  }

  /**
   * Lends a block and takes ownership of one reference to it. A block with other references at this moment is lent as shared. The model may
   * write to a block that is not shared. A later reader of a request's tensors must therefore have its own reference before the request is
   * handed to the worker.
   */
  lend(block: Block, executionId: number, use: LentBlock["use"], isShared = false): LentBlock {
    // Ids are reused after 2^30 blocks. An id that is still lent is skipped.
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

  /** Returns the block of a tensor in a result. Only blocks that were lent for this execution are allowed. */
  find(lentId: number, executionId: number): LentBlock {
    const lent = this.#lent.get(lentId);
    if (lent === undefined || lent.executionId !== executionId)
      throw new MalformedRecord(`a tensor in block ${lentId}, which execution ${executionId} was not lent`);
    return lent;
  }

  /** Returns an input block, which the worker passes on to another model. */
  input(lentId: number): LentBlock {
    const lent = this.#lent.get(lentId);
    if (lent?.use !== "input") throw new MalformedRecord(`a tensor in block ${lentId}, which is not lent`);
    return lent;
  }

  /** Ends the lending of blocks that the worker has released. */
  returnBlocks(lentIds: readonly number[]): void {
    for (const lentId of lentIds) {
      const lent = this.#lent.get(lentId);
      if (lent?.use !== "input") throw new MalformedRecord(`release of block ${lentId}, which is not lent`);
      this.#end(lent);
    }
  }

  /** Ends the lending of blocks for an execution that was never sent. */
  revoke(loans: readonly LentBlock[]): void {
    for (const lent of loans) this.#end(lent);
  }

  /** Ends the lending of output memory for an execution that has ended. The worker must not write to it any more. */
  endSpaces(spaces: readonly LentBlock[]): void {
    for (const lent of spaces) {
      assert(lent.use === "space", "only output space is released with its execution");
      if (this.#lent.has(lent.lentId)) this.#end(lent);
    }
  }

  /** Ends the lending of all blocks, because the process was reaped. */
  endAll(): void {
    for (const lent of this.#lent.values()) this.#end(lent);
  }

  #end(lent: LentBlock): void {
    this.#lent.delete(lent.lentId);
    lent.block.release();
  }
}
