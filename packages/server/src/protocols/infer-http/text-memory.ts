import type { ByteLease } from "@galatea/base";

/** Texts up to this size are charged only while they wait in the send buffer for a slow client. */
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
