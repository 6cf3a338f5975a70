import { createRequire } from "node:module";
import type koffiModule from "koffi";

/**
 * koffi's compiled library, from the package for this platform. The package `koffi` itself brings the libraries of all platforms and an
 * install script: only its types are used.
 */
const koffi = createRequire(import.meta.url)(
  `@koromix/koffi-${process.platform}-${process.arch}`,
) as typeof koffiModule;

const stackBytes = 8 * 1024 * 1024;

/**
 * Configures koffi, which must happen before any library is opened and only once. With the defaults, a C function has a 1 MiB stack (128
 * KiB for asynchronous calls; ONNX Runtime needs more) and the 257th concurrent call throws.
 */
koffi.config({
  sync_stack_size: stackBytes,
  async_stack_size: stackBytes,
  async_heap_size: 1024 * 1024,
  max_async_calls: 1024,
});

export { koffi };
