import { InferenceError } from "@galatea/base";
import { koffi } from "@galatea/base/system";

/**
 * The functions of ONNX Runtime's C API that we call: place in the OrtApi table (fixed for ever by its ABI promise), result
 * and parameters. Most return an OrtStatus pointer, null for success; handles travel as addresses.
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

/** What a parameter may be: a handle or address, memory we own, text (copied for the call), a number. */
export type Argument = bigint | ArrayBufferView | string | number | null;
/** A handle, or a status; null is the null pointer. */
export type Pointer = bigint | null;

export interface NativeFunction {
  (...values: Argument[]): unknown;
  /** Runs on a thread of libuv's pool. Memory given as an argument must be held by the caller until `settle`. */
  async(...valuesThenSettle: [...Argument[], (error: Error | null | undefined, result: unknown) => void]): void;
}

export type OrtApi = Readonly<Record<keyof typeof functions, NativeFunction>> & {
  /** What keeps the library in memory: koffi unloads it when nothing that it made of it is held any more. */
  readonly library: unknown;
};

/** The oldest API version whose table reaches the last function we use (ONNX Runtime 1.16). */
const apiVersion = 16;

export interface OrtLibrary {
  readonly api: OrtApi;
  /** As the library says it: "1.30.0". */
  readonly version: string;
}

/** Opens libonnxruntime and reads its function table. Throws UNAVAILABLE when the file is no such library or too old. */
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

/** Throws what a status says, released; returns when there is none. */
export function checkStatus(api: OrtApi, status: unknown): void {
  if (status !== null) throw takeError(api, status as bigint);
}

/** Triton's wording for everything ONNX Runtime refuses, followed by the runtime's own text. */
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

/** The same on a pool thread. Texts must come as `textBytes`: koffi does not keep a string for the length of the call. */
export function madeAsync(
  api: OrtApi,
  create: NativeFunction,
  ...values: readonly (bigint | Uint8Array)[]
): Promise<bigint> {
  const slot = new BigUint64Array(1);
  const held: unknown[] = [...values, slot];
  return new Promise((resolve, reject) => {
    create.async(...values, slot, (error, status) => {
      // The use here is what keeps the collector away from the arguments until now.
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

/** A C string in memory that a call can be given for as long as the caller holds it. */
export function textBytes(text: string): Uint8Array {
  return Buffer.from(`${text}\0`);
}

/** The text at a C string's address. */
export function readText(address: bigint): string {
  return koffi.decode.string(address);
}

/** Where a view's first byte lies. Valid while the view is referenced. */
export function addressOf(view: ArrayBufferView): bigint {
  return koffi.address(view);
}

const libc = koffi.load(null);
const memcpy = libc.func("memcpy", "void *", ["void *", "void *", "size_t"]);

/** Copies from memory that only the library knows into `target`, all of it. */
export function copyFrom(address: bigint, target: Uint8Array): void {
  if (target.byteLength > 0) memcpy(target, address, target.byteLength);
}

/** Copies `source` to memory that only the library knows. */
export function copyTo(address: bigint, source: Uint8Array): void {
  if (source.byteLength > 0) memcpy(address, source, source.byteLength);
}

/** Copies between two places that only the library and the kernel know. */
export function copyAddress(target: bigint, source: bigint, byteLength: number): void {
  if (byteLength > 0) memcpy(target, source, byteLength);
}
