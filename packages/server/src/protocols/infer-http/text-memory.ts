import type { ByteLease } from "@galatea/base";

/** Texts up to this size are counted only when a slow client leaves them in the buffer. */
const uncountedBytesMax = 64 * 1024;

/** Takes memory for a text before it is printed, by its maximum length. */
export function takeForText(memory: ByteLease, textBytesMax: number): void {
  if (textBytesMax > uncountedBytesMax) memory.grow(textBytesMax);
}

/** Reduces the memory taken for a text to its actual length. */
export function settleText(memory: ByteLease, heldBytes: number, textBytes: number): void {
  if (textBytes <= uncountedBytesMax) return memory.shrinkTo(heldBytes);
  memory.shrinkTo(heldBytes + textBytes);
  if (memory.bytes < heldBytes + textBytes) memory.growUnchecked(heldBytes + textBytes - memory.bytes);
}
