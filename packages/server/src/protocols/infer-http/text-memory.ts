import type { ByteLease } from "@galatea/base";

/** Shorter texts are charged only when a slow client leaves them in the send buffer. */
const uncountedBytesMax = 64 * 1024;

/** Charges a text to the lease before it is printed, by its maximum length. */
export function reserveTextMemory(memory: ByteLease, textBytesMax: number): void {
  if (textBytesMax > uncountedBytesMax) memory.grow(textBytesMax);
}

/** Reduces the charge of a printed text to its actual length. */
export function setTextMemory(memory: ByteLease, heldBytes: number, textBytes: number): void {
  if (textBytes <= uncountedBytesMax) return memory.shrinkTo(heldBytes);
  memory.shrinkTo(heldBytes + textBytes);
  if (memory.bytes < heldBytes + textBytes) memory.growUnchecked(heldBytes + textBytes - memory.bytes);
}
