import { type ByteRange, zipData, zipDirectory, ZipError } from "@galatea/runtimes/formats";
import { ConversionError } from "./conversion-error.ts";
import type { WeightFile } from "./stored-tensor.ts";

/** An uncompressed file in a zip archive, and its byte range. */
export interface StoredFile extends ByteRange {
  readonly name: string;
}

/** Maximum number of entries. A checkpoint has an entry for each storage. */
const entriesMax = 2 ** 20;

/**
 * Lists the files of a zip archive in PyTorch's format, without compression. Reads only the zip directory and the
 * headers of entries. Throws ConversionError for any other file.
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
    throw new ConversionError(`'${file.path}' is not a file of PyTorch's: it ${error.message}`, { cause: error });
  }
  return stored;
}

/** Reads a complete entry to memory. */
export function readEntry(file: WeightFile, entry: StoredFile): Promise<Buffer> {
  return readRange(file, entry);
}

/** Runs a generator that requests byte ranges of the file. Returns the generator's result. */
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
