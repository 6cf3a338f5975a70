import type { FileHandle } from "node:fs/promises";
import { ConversionError } from "./conversion-error.ts";

/** Element types of stored weights, and their sizes in bytes. */
export const storedTypes = { F64: 8, F32: 4, F16: 2, BF16: 2 } as const;
export type StoredType = keyof typeof storedTypes;

/**
 * A tensor's name, type and shape, and the location of its numbers. The numbers are consecutive, row-major and
 * little-endian.
 */
export interface StoredTensor {
  readonly name: string;
  readonly type: StoredType;
  readonly shape: readonly number[];
  readonly file: WeightFile;
  /** Offset of the first number in the file, in bytes. */
  readonly offset: number;
}

/** A file with tensors. It stays open while the checkpoint is open. */
export interface WeightFile {
  readonly path: string;
  readonly handle: FileHandle;
}

export function numberCount(shape: readonly number[]): number {
  return shape.reduce((product, dim) => product * dim, 1);
}

/** Reads `target.length` numbers of the tensor, starting with the number at index `first`. */
export async function readNumbers(tensor: StoredTensor, first: number, target: Float32Array): Promise<void> {
  const width = storedTypes[tensor.type];
  const raw =
    tensor.type === "F32"
      ? new Uint8Array(target.buffer, target.byteOffset, target.byteLength)
      : new Uint8Array(target.length * width);
  await readFully(tensor.file, raw, tensor.offset + first * width, tensor.name);
  switch (tensor.type) {
    case "F32":
      return;
    case "F64":
      target.set(new Float64Array(raw.buffer));
      return;
    case "F16":
      target.set(new Float16Array(raw.buffer));
      return;
    case "BF16": {
      // A bfloat16 is the upper half of a float32.
      const halves = new Uint16Array(raw.buffer);
      const words = new Uint32Array(target.buffer, target.byteOffset, target.length);
      for (let i = 0; i < halves.length; i++) words[i] = (halves[i] as number) << 16;
    }
  }
}

async function readFully({ path, handle }: WeightFile, raw: Uint8Array, offset: number, name: string): Promise<void> {
  let done = 0;
  while (done < raw.byteLength) {
    const { bytesRead } = await handle.read(raw, done, raw.byteLength - done, offset + done);
    if (bytesRead === 0) throw new ConversionError(`'${path}' was cut short while '${name}' was read`);
    done += bytesRead;
  }
}
