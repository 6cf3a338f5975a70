/**
 * CUDA errors after which every later call of the process fails with the same error, so that the process cannot use its GPU any more. They
 * include memory bit errors (214, 220), an invalid address, a kernel that exceeded its time limit, a destroyed context, an assertion and an
 * invalid instruction.
 */
const lostCodes: ReadonlySet<number> = new Set([214, 220, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719]);

/**
 * Returns whether a failed run shows that the process has lost its GPU. ONNX Runtime reports CUDA errors only as text: "CUDA failure 700:
 * ...".
 */
export function isGpuLost(message: string): boolean {
  const found = /\bCUDA (?:failure|error) (\d{1,4})\b/.exec(message);
  return found !== null && lostCodes.has(Number(found[1]));
}
