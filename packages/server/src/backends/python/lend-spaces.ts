import { InferenceError } from "@galatea/base";
import type { Arena } from "../../tensor/index.ts";
import type { LentBlock, LentBlocks } from "./lent-blocks.ts";

/** Lends space of these sizes for an execution: all of it, or returns the error. */
export function lendSpaces(
  lent: LentBlocks,
  arena: Arena,
  executionId: number,
  sizes: readonly number[],
): readonly LentBlock[] | InferenceError {
  const asked: LentBlock[] = [];
  try {
    for (const byteLength of sizes) {
      if (byteLength > arena.capacityBytes) throw beyondArena(byteLength, arena);
      asked.push(lent.lend(arena.allocate(byteLength), executionId, "space"));
    }
    return asked;
  } catch (error) {
    lent.takeBack(asked);
    if (error instanceof InferenceError) return error;
    throw error;
  }
}

/** Returns the error for a size over the arena's capacity, because the arena counts granules and cannot represent it. */
function beyondArena(byteLength: number, { usedBytes, capacityBytes }: Arena): InferenceError {
  const message = `${byteLength} bytes requested, ${usedBytes} of ${capacityBytes} bytes in use`;
  return new InferenceError("UNAVAILABLE", `shared memory arena is full: ${message}`);
}
