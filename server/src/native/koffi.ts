import koffi from "koffi";

const stackBytes = 8 * 1024 * 1024;

/**
 * The one place that configures koffi, before any library is opened. The defaults crash real work: a C function gets a 1 MiB stack
 * (128 KiB on the async door; ONNX Runtime needs more) and the 257th concurrent call throws.
 */
koffi.config({
  sync_stack_size: stackBytes,
  async_stack_size: stackBytes,
  async_heap_size: 1024 * 1024,
  max_async_calls: 1024,
});

export { koffi };
