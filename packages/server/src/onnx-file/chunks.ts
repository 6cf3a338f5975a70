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

export function isStreamed(piece: OnnxChunk): piece is StreamedBytes {
  return !(piece instanceof Uint8Array);
}

/** Writes the chunks to a file, replacing an existing one. Stops between two chunks when the signal aborts. */
export async function writeOnnxChunks(
  path: string,
  pieces: readonly OnnxChunk[],
  signal: AbortSignal | null,
): Promise<void> {
  await using file = await open(path, "w");
  let waiting: Uint8Array[] = [];
  const writeWaiting = async () => {
    if (waiting.length > 0) await writeAll(file, waiting);
    waiting = [];
  };
  for (const piece of pieces) {
    signal?.throwIfAborted();
    if (!isStreamed(piece)) {
      waiting.push(piece);
      if (waiting.length === chunksPerWrite) await writeWaiting();
      continue;
    }
    await writeWaiting();
    let written = 0;
    for await (const part of piece.read()) {
      signal?.throwIfAborted();
      await writeAll(file, [part]);
      written += part.byteLength;
    }
    assert(written === piece.byteLength, `a chunk of ${piece.byteLength} bytes was written as ${written}`);
  }
  await writeWaiting();
}

/** Writes all bytes. A full disk causes a partial write without an error; the next write then reports the error. */
async function writeAll(file: FileHandle, pieces: readonly Uint8Array[]): Promise<void> {
  let rest = pieces;
  while (rest.length > 0) {
    let { bytesWritten } = await file.writev([...rest]);
    const whole = rest.findIndex(({ byteLength }) => {
      if (byteLength > bytesWritten) return true;
      bytesWritten -= byteLength;
      return false;
    });
    rest = whole === -1 ? [] : [(rest[whole] as Uint8Array).subarray(bytesWritten), ...rest.slice(whole + 1)];
  }
}
