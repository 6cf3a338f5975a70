import { koffi } from "./koffi.ts";

/**
 * Returns freed memory of the C library's allocator to the system, in another thread. Otherwise glibc keeps it: 85 MB
 * after the unload of a MiniLM model, in the arena of the thread that ran the model. Does nothing with another C
 * library.
 */
export const trimHeap: () => Promise<void> = (() => {
  const trim = findTrim();
  if (trim === null) return () => Promise.resolve();
  return () =>
    new Promise((resolve, reject) => trim.async(0, (error: Error | null) => (error ? reject(error) : resolve())));
})();

function findTrim() {
  try {
    return koffi.load(null).func("int malloc_trim(size_t pad)");
  } catch {
    // musl has no `malloc_trim`, and returns freed memory without it.
    return null;
  }
}
