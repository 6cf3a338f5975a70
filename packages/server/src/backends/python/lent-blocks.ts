import { assert, RecyclingMap } from "@galatea/base";
import type { Block } from "../../tensor/index.ts";
import { MalformedRecord, type WireLent } from "./wire.ts";

/** `input`: read by the worker, until it releases the block. `space`: for one execution's outputs, until its result. */
export interface LentBlock extends WireLent {
  readonly block: Block;
  readonly executionId: number;
  readonly use: "input" | "space";
}

/**
 * The blocks lent to one worker. A loan has one reference to its block until the worker releases it or has been reaped. Nothing else ends
 * it: neither the end of the request, nor its deadline, nor the end of the execution.
 */
export class LentBlocks {
  readonly #lent = new RecyclingMap<LentBlock>();
  #lastId = 0;

  get count(): number {
    return this.#lent.size;
  }

  /**
   * Lends a block, and owns one reference to it. An input with other references at this moment is lent as shared. The model may write to
   * one without, at any time: later readers of a request's tensors must have a reference before the request is handed over.
   */
  lend(block: Block, executionId: number, use: LentBlock["use"], isShared = false): LentBlock {
    // Ids are reused after 2^30 loans, skipping those that are still lent.
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

  /** Returns the block of a tensor in a result; only blocks lent for that very execution are allowed. */
  find(lentId: number, executionId: number): LentBlock {
    const lent = this.#lent.get(lentId);
    if (lent === undefined || lent.executionId !== executionId)
      throw new MalformedRecord(`a tensor in block ${lentId}, which execution ${executionId} was not lent`);
    return lent;
  }

  /** Returns an input block, which the worker may pass on to another model. */
  input(lentId: number): LentBlock {
    const lent = this.#lent.get(lentId);
    if (lent?.use !== "input") throw new MalformedRecord(`a tensor in block ${lentId}, which is not lent`);
    return lent;
  }

  /** Ends loans that the worker has released. */
  giveBack(lentIds: readonly number[]): void {
    for (const lentId of lentIds) {
      const lent = this.#lent.get(lentId);
      if (lent?.use !== "input") throw new MalformedRecord(`release of block ${lentId}, which is not lent`);
      this.#end(lent);
    }
  }

  /** Ends the loans of an execution that was never sent. */
  takeBack(loans: readonly LentBlock[]): void {
    for (const lent of loans) this.#end(lent);
  }

  /** Ends the space of an execution that has ended: the worker must not write to it any more. */
  endSpaces(spaces: readonly LentBlock[]): void {
    for (const lent of spaces) {
      assert(lent.use === "space", "only output space is released with its execution");
      if (this.#lent.has(lent.lentId)) this.#end(lent);
    }
  }

  /** Ends all loans of a reaped process, which accesses none of them any more. */
  endAll(): void {
    for (const lent of this.#lent.values()) this.#end(lent);
  }

  #end(lent: LentBlock): void {
    this.#lent.delete(lent.lentId);
    lent.block.release();
  }
}
