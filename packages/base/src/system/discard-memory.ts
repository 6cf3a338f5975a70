import { koffi } from "./koffi.ts";
import { checkCall } from "./system-error.ts";

const MADV_DONTNEED = 4;

/**
 * Gives the pages of a WebAssembly memory back to the machine; they read as zeros afterwards. For memory that nobody uses any more, and that
 * collectors of idle threads will not see for long.
 */
export function discardMemory(buffer: ArrayBufferLike): void {
  const madvise = koffi.load(null).func("int madvise(void *address, size_t length, int advice)");
  checkCall("madvise", madvise(new Uint8Array(buffer), buffer.byteLength, MADV_DONTNEED) as number);
}
