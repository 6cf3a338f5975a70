import type { ByteLease } from "@galatea/base";

/** Texts up to this are counted only when a slow reader leaves them lying. */
const uncountedBytesMax = 64 * 1024;

/** Takes memory for a text before it is written, by the most that it may become. */
export function takeForText(memory: ByteLease, textBytesMax: number): void {
  if (textBytesMax > uncountedBytesMax) memory.grow(textBytesMax);
}

/** Of what was taken for a text before it was written, keeps as much as it became. */
export function settleText(memory: ByteLease, heldBytes: number, textBytes: number): void {
  if (textBytes <= uncountedBytesMax) return memory.shrinkTo(heldBytes);
  memory.shrinkTo(heldBytes + textBytes);
  if (memory.bytes < heldBytes + textBytes) memory.growAnyway(heldBytes + textBytes - memory.bytes);
}
