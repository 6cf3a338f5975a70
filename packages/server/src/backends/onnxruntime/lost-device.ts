/**
 * CUDA's errors after which a process can use its GPU no more: memory that lost bits (214, 220), an address that is not there, a kernel
 * that was ended for its time, a destroyed context, an assertion, an instruction that is none and their like. Every later call of the
 * process fails with the same error, whoever's it is.
 */
const lostCodes: ReadonlySet<number> = new Set([214, 220, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719]);

/** Whether a failed run has cost its process the GPU. ONNX Runtime tells of CUDA's errors in its text only: "CUDA failure 700: ...". */
export function losesDevice(message: string): boolean {
  const found = /\bCUDA (?:failure|error) (\d{1,4})\b/.exec(message);
  return found !== null && lostCodes.has(Number(found[1]));
}
