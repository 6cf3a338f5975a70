import { InferenceError } from "@galatea/base";
import { koffi } from "@galatea/base/system";

/**
 * Functions of ONNX Runtime's C API: index in the OrtApi table (fixed by its ABI guarantee), result type and parameter types. Most return
 * an OrtStatus pointer, null for success. Handles are addresses.
 */
const functions = {
  getErrorCode: [1, "int", ["void *"]],
  getErrorMessage: [2, "const char *", ["void *"]],
  createSession: [7, "void *", ["void *", "void *", "void *", "void *"]],
  createSessionFromArray: [8, "void *", ["void *", "void *", "size_t", "void *", "void *"]],
  run: [9, "void *", ["void *", "void *", "void *", "void *", "size_t", "void *", "size_t", "void *"]],
  createSessionOptions: [10, "void *", ["void *"]],
  setSessionExecutionMode: [13, "void *", ["void *", "int"]],
  disableMemPattern: [17, "void *", ["void *"]],
  disableCpuMemArena: [19, "void *", ["void *"]],
  setSessionGraphOptimizationLevel: [23, "void *", ["void *", "int"]],
  setIntraOpNumThreads: [24, "void *", ["void *", "int"]],
  setInterOpNumThreads: [25, "void *", ["void *", "int"]],
  sessionGetInputCount: [30, "void *", ["void *", "void *"]],
  sessionGetOutputCount: [31, "void *", ["void *", "void *"]],
  sessionGetInputTypeInfo: [33, "void *", ["void *", "size_t", "void *"]],
  sessionGetOutputTypeInfo: [34, "void *", ["void *", "size_t", "void *"]],
  sessionGetInputName: [36, "void *", ["void *", "size_t", "void *", "void *"]],
  sessionGetOutputName: [37, "void *", ["void *", "size_t", "void *", "void *"]],
  createRunOptions: [39, "void *", ["void *"]],
  runOptionsSetTerminate: [46, "void *", ["void *"]],
  runOptionsUnsetTerminate: [47, "void *", ["void *"]],
  createTensorAsOrtValue: [48, "void *", ["void *", "void *", "size_t", "int", "void *"]],
  createTensorWithDataAsOrtValue: [49, "void *", ["void *", "void *", "size_t", "void *", "size_t", "int", "void *"]],
  getTensorMutableData: [51, "void *", ["void *", "void *"]],
  getStringTensorDataLength: [53, "void *", ["void *", "void *"]],
  getStringTensorContent: [54, "void *", ["void *", "void *", "size_t", "void *", "size_t"]],
  castTypeInfoToTensorInfo: [55, "void *", ["void *", "void *"]],
  getOnnxTypeFromTypeInfo: [56, "void *", ["void *", "void *"]],
  getTensorElementType: [60, "void *", ["void *", "void *"]],
  getDimensionsCount: [61, "void *", ["void *", "void *"]],
  getDimensions: [62, "void *", ["void *", "void *", "size_t"]],
  getSymbolicDimensions: [63, "void *", ["void *", "void *", "size_t"]],
  getTensorTypeAndShape: [65, "void *", ["void *", "void *"]],
  getValueType: [67, "void *", ["void *", "void *"]],
  createCpuMemoryInfo: [69, "void *", ["int", "int", "void *"]],
  allocatorFree: [76, "void *", ["void *", "void *"]],
  getAllocatorWithDefaultOptions: [78, "void *", ["void *"]],
  releaseEnv: [92, "void", ["void *"]],
  releaseStatus: [93, "void", ["void *"]],
  releaseMemoryInfo: [94, "void", ["void *"]],
  releaseSession: [95, "void", ["void *"]],
  releaseValue: [96, "void", ["void *"]],
  releaseRunOptions: [97, "void", ["void *"]],
  releaseTypeInfo: [98, "void", ["void *"]],
  releaseTensorTypeAndShapeInfo: [99, "void", ["void *"]],
  releaseSessionOptions: [100, "void", ["void *"]],
  createEnvWithGlobalThreadPools: [119, "void *", ["int", "const char *", "void *", "void *"]],
  disablePerSessionThreads: [120, "void *", ["void *"]],
  createThreadingOptions: [121, "void *", ["void *"]],
  releaseThreadingOptions: [122, "void", ["void *"]],
  addSessionConfigEntry: [130, "void *", ["void *", "const char *", "const char *"]],
  createAndRegisterAllocator: [144, "void *", ["void *", "void *", "void *"]],
  setGlobalIntraOpNumThreads: [147, "void *", ["void *", "int"]],
  setGlobalInterOpNumThreads: [148, "void *", ["void *", "int"]],
  setGlobalSpinControl: [149, "void *", ["void *", "int"]],
  createArenaCfg: [156, "void *", ["size_t", "int", "int", "int", "void *"]],
  releaseArenaCfg: [157, "void", ["void *"]],
  addRunConfigEntry: [165, "void *", ["void *", "const char *", "const char *"]],
  appendTensorRt: [170, "void *", ["void *", "void *"]],
  createTensorRtOptions: [171, "void *", ["void *"]],
  updateTensorRtOptions: [172, "void *", ["void *", "void *", "void *", "size_t"]],
  releaseTensorRtOptions: [174, "void", ["void *"]],
  appendCuda: [204, "void *", ["void *", "void *"]],
  createCudaOptions: [205, "void *", ["void *"]],
  updateCudaOptions: [206, "void *", ["void *", "void *", "void *", "size_t"]],
  releaseCudaOptions: [208, "void", ["void *"]],
  getResizedStringTensorElementBuffer: [252, "void *", ["void *", "size_t", "size_t", "void *"]],
} as const satisfies Readonly<Record<string, readonly [number, string, readonly string[]]>>;

/** A native argument: a handle or address, a view of memory owned by the caller, text (copied for the call), or a number. */
export type Argument = bigint | ArrayBufferView | string | number | null;
/** The address of a handle or status; null is the null pointer. */
export type Pointer = bigint | null;

export interface NativeFunction {
  (...values: Argument[]): unknown;
  /** Calls the function on a thread of libuv's pool. The caller must keep memory arguments alive until `settle` is called. */
  async(...valuesThenSettle: [...Argument[], (error: Error | null | undefined, result: unknown) => void]): void;
}

export type OrtApi = Readonly<Record<keyof typeof functions, NativeFunction>> & {
  /** Keeps the library loaded: koffi unloads a library when nothing created from it is reachable. */
  readonly library: unknown;
};

/** The API version that is requested: the oldest one whose table contains all of these functions (ONNX Runtime 1.16). */
const apiVersion = 16;

export interface OrtLibrary {
  readonly api: OrtApi;
  /** The library's version text: "1.30.0". */
  readonly version: string;
}

/** Opens libonnxruntime and reads its function table. Throws UNAVAILABLE when the file is another library or too old. */
export function openOrtLibrary(libraryPath: string): OrtLibrary {
  let getBase: ReturnType<ReturnType<typeof koffi.load>["func"]>;
  try {
    getBase = koffi.load(libraryPath).func("OrtGetApiBase", "void *", []);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new InferenceError("UNAVAILABLE", `unable to load ONNX Runtime from '${libraryPath}': ${reason}`, {
      cause: error,
    });
  }
  // struct OrtApiBase { const OrtApi* (*GetApi)(uint32_t version); const char* (*GetVersionString)(void); }
  const base = getBase() as Pointer;
  const getApi = functionAt(base, 0, "void *", ["uint32_t"]);
  const version = functionAt(base, 1, "const char *", [])() as string;
  const table = getApi(apiVersion) as Pointer;
  if (table === null) {
    throw new InferenceError("UNAVAILABLE", `ONNX Runtime ${version} at '${libraryPath}' is too old: 1.16 is needed`);
  }
  const called = Object.entries(functions).map(([name, [index, result, parameters]]) => [
    name,
    functionAt(table, index, result, parameters),
  ]);
  const api = { ...Object.fromEntries(called), library: getBase } as OrtApi;
  return { api, version };
}

function functionAt(table: Pointer, index: number, result: string, parameters: readonly string[]): NativeFunction {
  return koffi.decode(addressAt(table, index), koffi.proto(result, [...parameters])) as NativeFunction;
}

function addressAt(table: Pointer, index: number): bigint {
  return koffi.decode(table, index * 8, "void *") as bigint;
}

/** Releases a status and throws its error; returns when the status is null (success). */
export function checkStatus(api: OrtApi, status: unknown): void {
  if (status !== null) throw consumeError(api, status as bigint);
}

/** Releases a status and returns its error: Triton's text followed by ONNX Runtime's text. */
export function consumeError(api: OrtApi, status: bigint): InferenceError {
  const code = api.getErrorCode(status) as number;
  const message = api.getErrorMessage(status) as string;
  api.releaseStatus(status);
  return new InferenceError("INTERNAL", `onnx runtime error ${code}: ${message}`);
}

/** Calls a function whose last parameter receives a new handle, and returns that handle. */
export function createHandle(api: OrtApi, create: NativeFunction, ...values: Argument[]): bigint {
  const slot = new BigUint64Array(1);
  checkStatus(api, create(...values, slot));
  return slot[0] as bigint;
}

/**
 * Calls a function whose last parameter receives a new handle, on a pool thread, and resolves with that handle. Text arguments must be
 * `cString`s, because koffi does not keep a string alive during an asynchronous call.
 */
export function createHandleAsync(
  api: OrtApi,
  create: NativeFunction,
  ...values: readonly (bigint | Uint8Array)[]
): Promise<bigint> {
  const slot = new BigUint64Array(1);
  const held: unknown[] = [...values, slot];
  return new Promise((resolve, reject) => {
    create.async(...values, slot, (error, status) => {
      // This write keeps the arguments reachable until the call has ended.
      held.length = 0;
      if (error !== null && error !== undefined) return reject(error);
      if (status !== null) return reject(consumeError(api, status as bigint));
      resolve(slot[0] as bigint);
    });
  });
}

/** Calls a function without a result on a pool thread. */
export function callAsync(release: NativeFunction, handle: bigint): Promise<void> {
  return new Promise((resolve, reject) => {
    release.async(handle, (error) => (error === null || error === undefined ? resolve() : reject(error)));
  });
}

/** Returns a zero-terminated string in memory that stays valid as long as the caller keeps the result. */
export function cString(text: string): Uint8Array {
  return Buffer.from(`${text}\0`);
}

/** Reads the zero-terminated text at an address. */
export function readCString(address: bigint): string {
  return koffi.decode.string(address);
}

/** Returns the address of a view's first byte. The address is valid while the view is reachable. */
export function addressOf(view: ArrayBufferView): bigint {
  return koffi.address(view);
}

const libc = koffi.load(null);
const memcpy = libc.func("memcpy", "void *", ["void *", "void *", "size_t"]);

/** Fills `target` from native memory. */
export function copyFromNative(address: bigint, target: Uint8Array): void {
  if (target.byteLength > 0) memcpy(target, address, target.byteLength);
}

/** Copies `source` to native memory. */
export function copyToNative(address: bigint, source: Uint8Array): void {
  if (source.byteLength > 0) memcpy(address, source, source.byteLength);
}

/** Copies from one native address to another. */
export function copyNative(target: bigint, source: bigint, byteLength: number): void {
  if (byteLength > 0) memcpy(target, source, byteLength);
}
