import { type ByteRange, zipData, zipDirectory, ZipError } from "@galatea/runtimes/formats";
import { ConversionError } from "./conversion-error.ts";
import type { WeightFile } from "./stored-tensor.ts";

/** A file in a zip, stored as it is. */
export interface StoredFile extends ByteRange {
  readonly name: string;
}

/** Checkpoints have a file for each storage. */
const entriesMax = 2 ** 20;

/**
 * The files of a zip as PyTorch writes it: nothing compressed. Reads the directory and the entries' headers and nothing else. Throws
 * ConversionError for what is no such file.
 */
export async function readTorchArchive(file: WeightFile): Promise<readonly StoredFile[]> {
  const fileBytes = (await file.handle.stat()).size;
  const stored: StoredFile[] = [];
  try {
    for (const entry of await readBy(file, zipDirectory(fileBytes, { entriesMax }))) {
      const { name, method, isEncrypted, packedBytes, byteLength } = entry;
      if (method !== 0 || isEncrypted || packedBytes !== byteLength) throw new ZipError(`has '${name}' compressed`);
      stored.push({ name, ...(await readBy(file, zipData(entry, fileBytes))) });
    }
  } catch (error) {
    if (!(error instanceof ZipError)) throw error;
    throw new ConversionError(`'${file.path}' is no file of PyTorch's: it ${error.message}`, { cause: error });
  }
  return stored;
}

/** The whole entry, in memory. */
export function readEntry(file: WeightFile, entry: StoredFile): Promise<Buffer> {
  return readRange(file, entry);
}

/** Gives a reader what it asks for. */
async function readBy<Result>(file: WeightFile, reader: Generator<ByteRange, Result, Buffer>): Promise<Result> {
  let step = reader.next();
  while (step.done !== true) step = reader.next(await readRange(file, step.value));
  return step.value;
}

async function readRange({ path, handle }: WeightFile, { offset, byteLength }: ByteRange): Promise<Buffer> {
  const bytes = Buffer.alloc(byteLength);
  let done = 0;
  while (done < byteLength) {
    const { bytesRead } = await handle.read(bytes, done, byteLength - done, offset + done);
    if (bytesRead === 0) throw new ConversionError(`'${path}' was cut short while it was read`);
    done += bytesRead;
  }
  return bytes;
}
