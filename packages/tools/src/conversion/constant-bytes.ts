import type { StreamedBytes } from "@galatea/server/onnx-file";
import { ConversionError } from "./conversion-error.ts";
import { numberCount, readNumbers, type StoredTensor } from "./stored-tensor.ts";

/** Element types of written weights, with their sizes in bytes. */
export const weightTypes = { FLOAT: 4, FLOAT16: 2 } as const;
export type WeightType = keyof typeof weightTypes;

/** Maximum number of elements that are read at once. */
const numbersAtOnceMax = 2 ** 20;
/**
 * Maximum number of elements of a matrix that are transposed at once. They take 64 MiB, which is enough for all but the
 * largest encoders.
 */
const turnedAtOnceMax = 16 * 2 ** 20;

/** Returns the concatenated numbers of the tensors. */
export function joinedBytes(tensors: readonly StoredTensor[], type: WeightType): StreamedBytes {
  return streamed(tensors, type, async function* (numbers) {
    for (const tensor of tensors) {
      const count = numberCount(tensor.shape);
      for (let first = 0; first < count; first += numbersAtOnceMax) {
        const part = numbers.subarray(0, Math.min(numbersAtOnceMax, count - first));
        await readNumbers(tensor, first, part);
        yield encoded(part, type, tensor);
      }
    }
  });
}

/** Returns the table [rows, width] after adding the first row of `added`, [any, width], to each of its rows. */
export function addedRowBytes(table: StoredTensor, added: StoredTensor, type: WeightType): StreamedBytes {
  const [rows, width] = table.shape as [number, number];
  const rowsAtOnce = Math.max(1, Math.floor(numbersAtOnceMax / width));
  return streamed([table], type, async function* () {
    const row = new Float32Array(width);
    await readNumbers(added, 0, row);
    const numbers = new Float32Array(Math.min(rows, rowsAtOnce) * width);
    for (let first = 0; first < rows; first += rowsAtOnce) {
      const part = numbers.subarray(0, Math.min(rowsAtOnce, rows - first) * width);
      await readNumbers(table, first * width, part);
      for (let i = 0; i < part.length; i++) part[i] = (part[i] as number) + (row[i % width] as number);
      yield encoded(part, type, table);
    }
  });
}

/**
 * Returns the matrix [rows, columns] transposed to [columns, rows]. A matrix above the limit is transposed in several
 * groups of columns, and is read once for each group.
 */
export function transposedBytes(matrix: StoredTensor, type: WeightType): StreamedBytes {
  const [rows, columns] = matrix.shape as [number, number];
  const columnsAtOnce = Math.max(1, Math.min(columns, Math.floor(turnedAtOnceMax / rows)));
  const rowsAtOnce = Math.max(1, Math.min(rows, Math.floor(numbersAtOnceMax / columns)));
  return streamed([matrix], type, async function* () {
    const read = new Float32Array(rowsAtOnce * columns);
    const turned = new Float32Array(rows * columnsAtOnce);
    for (let left = 0; left < columns; left += columnsAtOnce) {
      const count = Math.min(columnsAtOnce, columns - left);
      for (let top = 0; top < rows; top += rowsAtOnce) {
        const height = Math.min(rowsAtOnce, rows - top);
        await readNumbers(matrix, top * columns, read.subarray(0, height * columns));
        for (let column = 0; column < count; column++)
          for (let row = 0; row < height; row++)
            turned[column * rows + top + row] = read[row * columns + left + column] as number;
      }
      yield* parts(turned.subarray(0, rows * count), type, matrix);
    }
  });
}

/** Yields encoded numbers in chunks, because a conversion to half precision needs additional memory. */
function* parts(numbers: Float32Array, type: WeightType, tensor: StoredTensor): Generator<Uint8Array> {
  for (let first = 0; first < numbers.length; first += numbersAtOnceMax)
    yield encoded(numbers.subarray(first, first + numbersAtOnceMax), type, tensor);
}

/** Returns rows of the table [any, width]. `positions` contains the indexes of the rows, in the order of the result. */
export function chosenRowBytes(table: StoredTensor, positions: Int32Array, type: WeightType): StreamedBytes {
  const width = table.shape.at(-1) as number;
  const rowsAtOnce = Math.max(1, Math.floor(numbersAtOnceMax / width));
  return {
    byteLength: positions.length * width * weightTypes[type],
    async *read() {
      const rows = new Float32Array(numberCount(table.shape));
      await readNumbers(table, 0, rows);
      const numbers = new Float32Array(Math.min(positions.length, rowsAtOnce) * width);
      for (let first = 0; first < positions.length; first += rowsAtOnce) {
        const part = positions.subarray(first, first + rowsAtOnce);
        for (const [index, position] of part.entries())
          numbers.set(rows.subarray(position * width, (position + 1) * width), index * width);
        yield encoded(numbers.subarray(0, part.length * width), type, table);
      }
    },
  };
}

function streamed(
  tensors: readonly StoredTensor[],
  type: WeightType,
  read: (numbers: Float32Array) => AsyncGenerator<Uint8Array>,
): StreamedBytes {
  const counts = tensors.map(({ shape }) => numberCount(shape));
  const byteLength = counts.reduce((sum, count) => sum + count, 0) * weightTypes[type];
  return { byteLength, read: () => read(new Float32Array(Math.min(numbersAtOnceMax, Math.max(...counts)))) };
}

/** Returns the bytes to write. They are valid until the next chunk is requested. */
function encoded(numbers: Float32Array, type: WeightType, { name, file }: StoredTensor): Uint8Array {
  if (type === "FLOAT") return bytesOf(numbers);
  const halves = Float16Array.from(numbers);
  const lost = halves.findIndex((half, index) => !Number.isFinite(half) && Number.isFinite(numbers[index]));
  if (lost !== -1)
    throw new ConversionError(
      `'${name}' in '${file.path}' has the number ${numbers[lost]}, which float16 cannot hold; convert with --dtype=float32`,
    );
  return bytesOf(halves);
}

function bytesOf(numbers: Float32Array | Float16Array): Uint8Array {
  return new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength);
}
