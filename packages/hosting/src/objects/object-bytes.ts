import type { FileHandle } from "node:fs/promises";
import { Readable } from "node:stream";
import { callbackify } from "node:util";
import { crc32 } from "node:zlib";
import { AwsError } from "@galatea/base";
import type { ObjectEntry } from "./object-entry.ts";

const chunkBytes = 2 ** 18;

/** An open object. Its bytes do not change, even if the key is overwritten or deleted. */
export interface OpenObject {
  readonly entry: ObjectEntry;
  readonly file: FileHandle;
}

/**
 * Streams the bytes from `start` (inclusive) to `end` (exclusive) and closes the file at the end. A complete read is
 * checked against the object's CRC before the last bytes are returned. No reader receives all bytes of a damaged
 * object. If bytes are damaged, calls `onDamage` once and fails the stream.
 */
export function readObjectBytes(
  { entry, file }: OpenObject,
  { start, end }: { readonly start: number; readonly end: number },
  onDamage: (reason: string) => void,
): Readable {
  const isWhole = start === 0 && end === entry.head.byteLength;
  const close = callbackify(() => file.close());
  let at = start;
  let sum = 0;
  const damaged = (reason: string) => {
    onDamage(reason);
    return new AwsError("InternalError", `The object's bytes are damaged: ${reason}`, { statusFallback: 500 });
  };
  const next = async (): Promise<Buffer | null> => {
    if (at === end) return null;
    // Not from Node's pool, so that the reader owns the complete buffer.
    const chunk = Buffer.allocUnsafeSlow(Math.min(chunkBytes, end - at));
    for (let filled = 0; filled < chunk.byteLength;) {
      const { bytesRead } = await file.read(chunk, filled, chunk.byteLength - filled, entry.offset + at);
      if (bytesRead === 0) throw damaged(`they end at ${at} of ${entry.head.byteLength}`);
      filled += bytesRead;
      at += bytesRead;
    }
    if (isWhole) {
      sum = crc32(chunk, sum);
      if (at === end && sum !== entry.crc32) throw damaged("their CRC does not match");
    }
    return chunk;
  };
  const body: Readable = new Readable({
    // Allows one chunk to be read while the previous one is sent.
    highWaterMark: 2 * chunkBytes,
    read: () =>
      void next().then(
        (chunk) => body.push(chunk),
        (error: unknown) => body.destroy(error as Error),
      ),
    destroy: (error, done) => close((cause) => done(error ?? cause)),
  });
  return body;
}
