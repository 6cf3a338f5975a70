import { InferenceError } from "@galatea/base";
import { koffi } from "@galatea/base/system";

/**
 * Functions of ONNX Runtime's C API: index in the OrtApi table (fixed by its ABI promise), result and parameters. Most return an
 * OrtStatus pointer, null for success; handles are addresses.
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
/** A handle or a status; null is the null pointer. */
export type Pointer = bigint | null;

export interface NativeFunction {
  (...values: Argument[]): unknown;
  /** Runs on a thread of libuv's pool. The caller must keep memory arguments alive until the callback `settle`. */
  async(...valuesThenSettle: [...Argument[], (error: Error | null | undefined, result: unknown) => void]): void;
}

export type OrtApi = Readonly<Record<keyof typeof functions, NativeFunction>> & {
  /** Keeps the library in memory: koffi unloads it when nothing that was created from it is reachable. */
  readonly library: unknown;
};

/** The oldest API version whose table contains all of these functions (ONNX Runtime 1.16). */
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

/** Throws the error of a status, which is released; returns when the status is null. */
export function checkStatus(api: OrtApi, status: unknown): void {
  if (status !== null) throw takeError(api, status as bigint);
}

/** Returns Triton's text for an error of ONNX Runtime, followed by the runtime's own text. */
export function takeError(api: OrtApi, status: bigint): InferenceError {
  const code = api.getErrorCode(status) as number;
  const message = api.getErrorMessage(status) as string;
  api.releaseStatus(status);
  return new InferenceError("INTERNAL", `onnx runtime error ${code}: ${message}`);
}

/** Calls a function whose last parameter receives a handle, and returns that handle. */
export function made(api: OrtApi, create: NativeFunction, ...values: Argument[]): bigint {
  const slot = new BigUint64Array(1);
  checkStatus(api, create(...values, slot));
  return slot[0] as bigint;
}

/**
 * Calls a function on a pool thread whose last parameter receives a handle, and returns that handle. Texts must be passed as `textBytes`:
 * koffi does not keep a string for the time of the call.
 */
export function madeAsync(
  api: OrtApi,
  create: NativeFunction,
  ...values: readonly (bigint | Uint8Array)[]
): Promise<bigint> {
  const slot = new BigUint64Array(1);
  const held: unknown[] = [...values, slot];
  return new Promise((resolve, reject) => {
    create.async(...values, slot, (error, status) => {
      // This use keeps the arguments reachable until the call has ended.
      held.length = 0;
      if (error !== null && error !== undefined) return reject(error);
      if (status !== null) return reject(takeError(api, status as bigint));
      resolve(slot[0] as bigint);
    });
  });
}

/** Calls a function without a result on a pool thread. */
export function calledAsync(release: NativeFunction, handle: bigint): Promise<void> {
  return new Promise((resolve, reject) => {
    release.async(handle, (error) => (error === null || error === undefined ? resolve() : reject(error)));
  });
}

/** Returns a C string in memory, for calls that need it as long as the caller keeps it. */
export function textBytes(text: string): Uint8Array {
  return Buffer.from(`${text}\0`);
}

/** Reads the text at a C string's address. */
export function readText(address: bigint): string {
  return koffi.decode.string(address);
}

/** Returns the address of a view's first byte. Valid while the view is reachable. */
export function addressOf(view: ArrayBufferView): bigint {
  return koffi.address(view);
}

const libc = koffi.load(null);
const memcpy = libc.func("memcpy", "void *", ["void *", "void *", "size_t"]);

/** Copies from native memory into `target`, all of it. */
export function copyFrom(address: bigint, target: Uint8Array): void {
  if (target.byteLength > 0) memcpy(target, address, target.byteLength);
}

/** Copies `source` to native memory. */
export function copyTo(address: bigint, source: Uint8Array): void {
  if (source.byteLength > 0) memcpy(address, source, source.byteLength);
}

/** Copies from one native address to another. */
export function copyAddress(target: bigint, source: bigint, byteLength: number): void {
  if (byteLength > 0) memcpy(target, source, byteLength);
}
