import { checkStatus, made, type NativeFunction, type OrtApi, readText } from "./onnxruntime-api.ts";

/** An input or output as the model file declares it. */
export interface OnnxValueInfo {
  readonly name: string;
  /** ONNXType: 1 for a tensor. Sequences, maps and optionals are not supported. */
  readonly onnxType: number;
  /** ONNXTensorElementDataType; 0 for other types than tensors. */
  readonly elementType: number;
  /** -1 for a dynamic dimension; [] for a scalar. */
  readonly dims: readonly number[];
  /** The name of each dynamic dimension; "" when it has none or the dimension is fixed. Equal names mean equal sizes. */
  readonly symbols: readonly string[];
}

/** ONNXTensorElementDataType of strings, whose elements are objects instead of bytes. */
export const onnxStringType = 8;
export const onnxTensorKind = 1;

/** Bytes of an element by ONNXTensorElementDataType; strings and unsupported types are absent. */
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
  /** The library's default allocator, for names. */
  readonly allocator: bigint;
}

/** Returns the inputs or outputs of a loaded model, in the library's order. */
export function describeValues(parts: DescribedSession, side: "Input" | "Output"): readonly OnnxValueInfo[] {
  const { api, session, allocator } = parts;
  const count = Number(made(api, api[`sessionGet${side}Count`], session));
  return Array.from({ length: count }, (_, index) => {
    const nameAddress = made(api, api[`sessionGet${side}Name`], session, index, allocator);
    const name = readText(nameAddress);
    checkStatus(api, api.allocatorFree(allocator, nameAddress));
    const typeInfo = made(api, api[`sessionGet${side}TypeInfo`], session, index);
    try {
      const onnxType = readInt(api.getOnnxTypeFromTypeInfo, api, typeInfo);
      if (onnxType !== onnxTensorKind) return { name, onnxType, elementType: 0, dims: [], symbols: [] };
      // Borrowed from the type info: not released here.
      const tensorInfo = made(api, api.castTypeInfoToTensorInfo, typeInfo);
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
    symbols: Array.from(symbols, (address) => (address === 0n ? "" : readText(address))),
  };
}

export function readTensorInfo(api: OrtApi, info: bigint): { elementType: number; shape: readonly number[] } {
  const elementType = readInt(api.getTensorElementType, api, info);
  const rank = Number(made(api, api.getDimensionsCount, info));
  const dims = new BigInt64Array(rank);
  if (rank > 0) checkStatus(api, api.getDimensions(info, dims, rank));
  return { elementType, shape: Array.from(dims, Number) };
}

export function readInt(get: NativeFunction, api: OrtApi, handle: bigint): number {
  const slot = new Int32Array(1);
  checkStatus(api, get(handle, slot));
  return slot[0] as number;
}
