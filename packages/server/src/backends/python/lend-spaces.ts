import { InferenceError } from "@galatea/base";
import type { Arena } from "../../tensor/index.ts";
import type { LentBlock, LentBlocks } from "./lent-blocks.ts";

/** Space of these sizes, lent for an execution: all of it, or why not. */
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

/** Told here: the arena counts in granules, and far fewer than these. */
function beyondArena(byteLength: number, { usedBytes, capacityBytes }: Arena): InferenceError {
  const message = `${byteLength} bytes requested, ${usedBytes} of ${capacityBytes} bytes in use`;
  return new InferenceError("UNAVAILABLE", `shared memory arena is full: ${message}`);
}
