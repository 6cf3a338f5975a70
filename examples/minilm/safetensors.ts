/**
 * Reads a .safetensors file: a uint64 length, that many bytes of JSON (name to dtype, shape and data offsets), then the data.
 */
import { readFile } from "node:fs/promises";

export interface WeightFile {
  /** The named tensor's values, which must be FP32 and of exactly this shape. The view borrows the file's bytes. */
  fp32(name: string, shape: readonly number[]): Float32Array;
}

interface Entry {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly data_offsets: readonly [number, number];
}

export async function readSafetensors(path: string): Promise<WeightFile> {
  const bytes = await readFile(path);
  if (bytes.byteLength < 8) throw new Error(`${path} is no safetensors file: it has only ${bytes.byteLength} bytes`);
  const headerLength = Number(bytes.readBigUInt64LE(0));
  const dataStart = 8 + headerLength;
  if (dataStart > bytes.byteLength) throw new Error(`${path} is no safetensors file: its header ends behind its end`);
  const entries = JSON.parse(bytes.toString("utf8", 8, dataStart)) as Record<string, Entry>;

  return {
    fp32(name, shape) {
      const entry = entries[name];
      if (entry === undefined) throw new Error(`${path} has no tensor '${name}'`);
      if (entry.dtype !== "F32" || entry.shape.join() !== shape.join()) {
        throw new Error(`${path}: '${name}' is ${entry.dtype} [${entry.shape.join()}], expected F32 [${shape.join()}]`);
      }
      const [start, end] = entry.data_offsets;
      const data = bytes.subarray(dataStart + start, dataStart + end);
      const count = shape.reduce((product, dim) => product * dim, 1);
      if (data.byteLength !== count * 4) throw new Error(`${path}: '${name}' is cut short`);
      if (data.byteOffset % 4 === 0) return new Float32Array(data.buffer, data.byteOffset, count);
      return new Float32Array(Uint8Array.from(data).buffer);
    },
  };
}
