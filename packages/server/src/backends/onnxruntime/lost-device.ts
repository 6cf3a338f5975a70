/**
 * CUDA errors after which a process cannot use its GPU any more: memory bit errors (214, 220), an invalid address, a kernel that was
 * ended by its time limit, a destroyed context, an assertion, an invalid instruction and others. Every later call of the process fails
 * with the same error.
 */
const lostCodes: ReadonlySet<number> = new Set([214, 220, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719]);

/**
 * Returns whether a failed run has lost the process its GPU. ONNX Runtime reports CUDA errors only in its text: "CUDA failure 700: ...".
 */
export function losesDevice(message: string): boolean {
  const found = /\bCUDA (?:failure|error) (\d{1,4})\b/.exec(message);
  return found !== null && lostCodes.has(Number(found[1]));
}
