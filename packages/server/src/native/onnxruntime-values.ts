import { checkStatus, createHandle, type NativeFunction, type OrtApi, readCString } from "./onnxruntime-api.ts";

/** An input or output as the model file declares it. */
export interface OnnxValueInfo {
  readonly name: string;
  /** ONNXType of the value: 1 for a tensor. Sequences, maps and optionals are not supported. */
  readonly onnxType: number;
  /** ONNXTensorElementDataType of the elements; 0 when the value is not a tensor. */
  readonly elementType: number;
  /** Dimensions; -1 for a dynamic one, [] for a scalar. */
  readonly dims: readonly number[];
  /** Names of the dynamic dimensions; "" for fixed and unnamed ones. Dimensions with equal names have equal sizes. */
  readonly symbols: readonly string[];
}

/** ONNXTensorElementDataType of strings, whose elements are string objects instead of bytes. */
export const onnxStringType = 8;
export const onnxTensorKind = 1;

/** Size of an element in bytes, by ONNXTensorElementDataType. Strings and unsupported types have no entry. */
export const elementBytes: ReadonlyMap<number, number> = new Map([
  [1, 4],
  [2, 1],
  [3, 1],
  [4, 2],
  [5, 2],
  [6, 4],
  [7, 8],
  [9, 1],
  [10, 2],
  [11, 8],
  [12, 4],
  [13, 8],
  [16, 2],
]);

export interface DescribedSession {
  readonly api: OrtApi;
  readonly session: bigint;
  /** The library's default allocator, which allocates the names. */
  readonly allocator: bigint;
}

/** Returns the inputs or outputs of a loaded model, in the library's order. */
export function describeValues(parts: DescribedSession, side: "Input" | "Output"): readonly OnnxValueInfo[] {
  const { api, session, allocator } = parts;
  const count = Number(createHandle(api, api[`sessionGet${side}Count`], session));
  return Array.from({ length: count }, (_, index) => {
    const nameAddress = createHandle(api, api[`sessionGet${side}Name`], session, index, allocator);
    const name = readCString(nameAddress);
    checkStatus(api, api.allocatorFree(allocator, nameAddress));
    const typeInfo = createHandle(api, api[`sessionGet${side}TypeInfo`], session, index);
    try {
      const onnxType = callForInt(api.getOnnxTypeFromTypeInfo, api, typeInfo);
      if (onnxType !== onnxTensorKind) return { name, onnxType, elementType: 0, dims: [], symbols: [] };
      // Borrowed from the type info: must not be released here.
      const tensorInfo = createHandle(api, api.castTypeInfoToTensorInfo, typeInfo);
      return { name, onnxType, ...describeTensor(api, tensorInfo) };
    } finally {
      api.releaseTypeInfo(typeInfo);
    }
  });
}

function describeTensor(api: OrtApi, info: bigint) {
  const { elementType, shape: dims } = readTensorInfo(api, info);
  const symbols = new BigUint64Array(dims.length);
  if (dims.length > 0) checkStatus(api, api.getSymbolicDimensions(info, symbols, dims.length));
  return {
    elementType,
    dims,
    symbols: Array.from(symbols, (address) => (address === 0n ? "" : readCString(address))),
  };
}

export function readTensorInfo(api: OrtApi, info: bigint): { elementType: number; shape: readonly number[] } {
  const elementType = callForInt(api.getTensorElementType, api, info);
  const rank = Number(createHandle(api, api.getDimensionsCount, info));
  const dims = new BigInt64Array(rank);
  if (rank > 0) checkStatus(api, api.getDimensions(info, dims, rank));
  return { elementType, shape: Array.from(dims, Number) };
}

export function callForInt(get: NativeFunction, api: OrtApi, handle: bigint): number {
  const slot = new Int32Array(1);
  checkStatus(api, get(handle, slot));
  return slot[0] as number;
}
