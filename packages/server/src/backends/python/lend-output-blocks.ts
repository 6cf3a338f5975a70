import { InferenceError } from "@galatea/base";
import type { Arena } from "../../tensor/index.ts";
import type { LentBlock, LentBlocks } from "./lent-blocks.ts";

/** Allocates blocks of these sizes and lends them to an execution. If one cannot be allocated, lends none and returns the error. */
export function lendOutputBlocks(
  lent: LentBlocks,
  arena: Arena,
  executionId: number,
  sizes: readonly number[],
): readonly LentBlock[] | InferenceError {
  const spaces: LentBlock[] = [];
  try {
    for (const byteLength of sizes) {
      if (byteLength > arena.capacityBytes) throw arenaFullError(byteLength, arena);
      spaces.push(lent.lend(arena.allocate(byteLength), executionId, "space"));
    }
    return spaces;
  } catch (error) {
    lent.revoke(spaces);
    if (error instanceof InferenceError) return error;
    throw error;
  }
}

/** Returns the error for a size that exceeds the arena's capacity. The arena's `allocate` is not called for such a size. */
function arenaFullError(byteLength: number, { usedBytes, capacityBytes }: Arena): InferenceError {
  const message = `${byteLength} bytes requested, ${usedBytes} of ${capacityBytes} bytes in use`;
  return new InferenceError("UNAVAILABLE", `shared memory arena is full: ${message}`);
}
