import { InferenceError } from "@galatea/base";
import { joinBytesElements, type Datatype, type Tensor } from "../../tensor/index.ts";

const resultsMax = 1_000_000;

type ReadElement = (view: DataView, index: number) => number | bigint;

/** Functions that read an element, for the datatypes that can be ordered. */
const readers: Readonly<Partial<Record<Datatype, ReadElement>>> = {
  UINT8: (view, index) => view.getUint8(index),
  UINT16: (view, index) => view.getUint16(index * 2, true),
  UINT32: (view, index) => view.getUint32(index * 4, true),
  UINT64: (view, index) => view.getBigUint64(index * 8, true),
  INT8: (view, index) => view.getInt8(index),
  INT16: (view, index) => view.getInt16(index * 2, true),
  INT32: (view, index) => view.getInt32(index * 4, true),
  INT64: (view, index) => view.getBigInt64(index * 8, true),
  FP32: (view, index) => view.getFloat32(index * 4, true),
  FP64: (view, index) => view.getFloat64(index * 8, true),
};

/**
 * Returns the result of the classification extension: a BYTES tensor of shape [batch?, k]. It contains the `classCount` largest elements of
 * each batch row as `<value>:<index>[:<label>]`. Equal elements are in the order of their indices, and NaN follows every number. The caller
 * still owns the input.
 */
export function classify(output: Tensor, classCount: number, batches: boolean, labels: readonly string[]): Tensor {
  const read = readers[output.datatype];
  if (read === undefined) {
    throw new InferenceError(
      "INVALID_ARG",
      `class result not available for output due to unsupported type '${output.datatype}'`,
    );
  }
  const rows = batches ? (output.shape[0] ?? 1) : 1;
  let rowElements = 1;
  for (const dimension of batches ? output.shape.slice(1) : output.shape) rowElements *= dimension;
  const kept = Math.min(classCount, rowElements);
  if (rows * kept > resultsMax) throw new InferenceError("INVALID_ARG", "classification output tensor too large");
  const floating = output.datatype === "FP32" || output.datatype === "FP64";
  const view = new DataView(output.data.buffer, output.data.byteOffset, output.data.byteLength);
  const elements: Uint8Array[] = [];
  for (let row = 0; row < rows; row++) {
    for (const index of topIndices(view, read, { first: row * rowElements, count: rowElements, kept })) {
      const value = read(view, row * rowElements + index);
      const label = labels[index];
      const text = floating ? fixedText(Number(value)) : String(value);
      elements.push(
        Buffer.from(label === undefined || label === "" ? `${text}:${index}` : `${text}:${index}:${label}`),
      );
    }
  }
  const shape = batches ? [rows, kept] : [kept];
  return { name: output.name, datatype: "BYTES", shape, data: joinBytesElements(elements), block: null };
}

/** Number of candidates that are collected in addition to `k` before the largest are selected. */
const slack = 32;

interface Scored {
  readonly index: number;
  readonly value: number | bigint;
}

/**
 * Returns the indices of the largest elements. One pass collects candidates, and only the candidates are sorted. Most elements of a tensor
 * with a million scores are therefore never sorted.
 */
function topIndices(
  view: DataView,
  read: ReadElement,
  { first, count, kept }: { readonly first: number; readonly count: number; readonly kept: number },
): number[] {
  const candidates: Scored[] = [];
  const candidatesMax = 2 * kept + slack;
  let least: number | bigint | null = null;
  const select = (): void => {
    candidates.sort((a, b) => (isBefore(a.value, b.value) ? -1 : Number(isBefore(b.value, a.value))));
    candidates.length = Math.min(candidates.length, kept);
    least = candidates[kept - 1]?.value ?? null;
  };
  for (let index = 0; index < count; index++) {
    const value = read(view, first + index);
    if (least !== null && !isBefore(value, least)) continue;
    candidates.push({ index, value });
    if (candidates.length === candidatesMax) select();
  }
  select();
  return candidates.map(({ index }) => index);
}

/** Sorts NaN after every number. */
const isBefore = (a: number | bigint, b: number | bigint) => a > b || (Number.isNaN(b) && !Number.isNaN(a));

/** Prints a number like C's %f: six decimals, all digits before the point, ties to the even digit; `nan` and `inf`. */
export function fixedText(value: number): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  if (Math.abs(value) >= 1e21) return `${BigInt(value)}.000000`;
  // Half of the last decimal is 1 / (2^7 * 5^6). A double can lie exactly half way only if it is an odd number of 128ths.
  const parts = Math.abs(value) * 128;
  if (parts % 2 === 1) return halfwayText(value < 0 ? "-" : "", BigInt(parts));
  const text = value.toFixed(6);
  return Object.is(value, -0) ? `-${text}` : text;
}

function halfwayText(sign: string, parts: bigint): string {
  const below = (parts * 15625n) / 2n;
  const millionths = below + (below & 1n);
  return `${sign}${millionths / 1_000_000n}.${String(millionths % 1_000_000n).padStart(6, "0")}`;
}
