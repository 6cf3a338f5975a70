import koffi from "koffi";

/**
 * The one place that configures koffi, before any library is opened. The defaults crash real work: a C function on the async
 * door gets a 128 KiB stack (ONNX Runtime needs more) and the 257th concurrent call throws.
 */
koffi.config({ async_stack_size: 8 * 1024 * 1024, async_heap_size: 1024 * 1024, max_async_calls: 1024 });

export { koffi };
