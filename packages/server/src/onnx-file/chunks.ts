import { open, type FileHandle } from "node:fs/promises";
import { assert } from "@galatea/base";

/** Bytes that are produced chunk by chunk while they are written. */
export interface StreamedBytes {
  readonly byteLength: number;
  /** Yields the bytes. A chunk is valid until the next one is read. */
  read(): AsyncIterable<Uint8Array>;
}

export type OnnxChunk = Uint8Array | StreamedBytes;

/** Number of chunks in one writev call, below the system's limit IOV_MAX. */
const chunksPerWrite = 512;

export function isStreamed(chunk: OnnxChunk): chunk is StreamedBytes {
  return !(chunk instanceof Uint8Array);
}

/** Writes the chunks to a file, replacing an existing one. Stops between two chunks when the signal aborts. */
export async function writeOnnxChunks(
  path: string,
  chunks: readonly OnnxChunk[],
  signal: AbortSignal | null,
): Promise<void> {
  await using file = await open(path, "w");
  let waiting: Uint8Array[] = [];
  const writeWaiting = async () => {
    if (waiting.length > 0) await writeAll(file, waiting);
    waiting = [];
  };
  for (const segment of chunks) {
    signal?.throwIfAborted();
    if (!isStreamed(segment)) {
      waiting.push(segment);
      if (waiting.length === chunksPerWrite) await writeWaiting();
      continue;
    }
    await writeWaiting();
    let written = 0;
    for await (const part of segment.read()) {
      signal?.throwIfAborted();
      await writeAll(file, [part]);
      written += part.byteLength;
    }
    assert(written === segment.byteLength, `a chunk of ${segment.byteLength} bytes was written as ${written}`);
  }
  await writeWaiting();
}

/** Writes all bytes. A full disk causes a partial write without an error; the next write then reports the error. */
async function writeAll(file: FileHandle, chunks: readonly Uint8Array[]): Promise<void> {
  let rest = chunks;
  while (rest.length > 0) {
    let { bytesWritten } = await file.writev([...rest]);
    const total = rest.findIndex(({ byteLength }) => {
      if (byteLength > bytesWritten) return true;
      bytesWritten -= byteLength;
      return false;
    });
    rest = total === -1 ? [] : [(rest[total] as Uint8Array).subarray(bytesWritten), ...rest.slice(total + 1)];
  }
}
