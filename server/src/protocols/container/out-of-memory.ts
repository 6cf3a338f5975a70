/** Texts that mean "unload something and try again" to the platform (status 507), as the original's front end lists them. */
const outOfMemoryTexts = [
  "CUDA out of memory",
  "CUDA_OUT_OF_MEMORY",
  "Out of memory",
  "Out Of Memory",
  "out of memory",
  "MemoryError",
  "OutOfMemory",
  "OOM",
  "Dst tensor is not initialized",
  "Src tensor is not initialized",
  "CNMEM_STATUS_OUT_OF_MEMORY",
  "CUDNN_STATUS_NOT_INITIALIZED",
  "CUBLAS_STATUS_ALLOC_FAILED",
  "CUBLAS_STATUS_NOT_INITIALIZED",
  "Failed to allocate memory",
  "failed to allocate memory",
  "No space left on device",
] as const;

export function saysOutOfMemory(message: string): boolean {
  return outOfMemoryTexts.some((text) => message.includes(text));
}
