import { createRequire } from "node:module";
import type koffiModule from "koffi";

/**
 * koffi's compiled library, from the package for this operating system and architecture. The package `koffi` itself
 * contains the libraries of all platforms and an install script, so only its types are used.
 */
const koffi = createRequire(import.meta.url)(
  `@koromix/koffi-${process.platform}-${process.arch}`,
) as typeof koffiModule;

const stackBytes = 8 * 1024 * 1024;

/**
 * Configures koffi. This must happen only once, before any library is opened. By default, a C function has a stack of 1
 * MiB, or 128 KiB in an asynchronous call, and ONNX Runtime needs more. Also by default, the 257th concurrent call
 * throws.
 */
koffi.config({
  sync_stack_size: stackBytes,
  async_stack_size: stackBytes,
  async_heap_size: 1024 * 1024,
  max_async_calls: 1024,
});

export { koffi };
