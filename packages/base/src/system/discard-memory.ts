import { koffi } from "./koffi.ts";
import { checkSystemCall } from "./system-error.ts";

const MADV_DONTNEED = 4;

/**
 * Returns the pages of an unused WebAssembly memory to the system; they read as zeros afterwards. Without this, the
 * memory stays allocated until the garbage collector of its thread runs. In an idle thread, this may take long.
 */
export function discardMemory(buffer: ArrayBufferLike): void {
  const madvise = koffi.load(null).func("int madvise(void *address, size_t length, int advice)");
  checkSystemCall("madvise", madvise(new Uint8Array(buffer), buffer.byteLength, MADV_DONTNEED) as number);
}
