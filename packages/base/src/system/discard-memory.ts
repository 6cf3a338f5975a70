import { koffi } from "./koffi.ts";
import { checkCall } from "./system-error.ts";

const MADV_DONTNEED = 4;

/**
 * Returns the pages of a WebAssembly memory to the system; they read as zeros afterwards. For memory that is no longer used, and that
 * garbage collectors of idle threads would keep for long.
 */
export function discardMemory(buffer: ArrayBufferLike): void {
  const madvise = koffi.load(null).func("int madvise(void *address, size_t length, int advice)");
  checkCall("madvise", madvise(new Uint8Array(buffer), buffer.byteLength, MADV_DONTNEED) as number);
}
