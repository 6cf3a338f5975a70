import { closeSync, constants, fstatSync, openSync, write, writeSync } from "node:fs";
import { open } from "node:fs/promises";
import { promisify } from "node:util";
import { asDiskError, delay, systemClock } from "@galatea/base";
import type { LineTarget } from "./line-writer.ts";

/** Flags for opening a log. O_NONBLOCK is needed because opening or writing a named pipe must not block. */
const appendFlags = constants.O_APPEND | constants.O_CREAT | constants.O_WRONLY | constants.O_NONBLOCK;

/** Retry interval for a full named pipe, in milliseconds. Nothing notifies the writer when the pipe has space again. */
const fullPipePollMs = 100;
/** Maximum number of characters of unwritable lines that are shown on stderr. */
const shownCharsMax = 1024;

/**
 * Returns a target that opens the file for each write, so that log rotation can rename it. Throws if the file cannot be
 * opened now.
 */
export function fileTarget(path: string): LineTarget {
  closeSync(openSync(path, appendFlags));
  return {
    async append(text) {
      await using file = await open(path, appendFlags);
      let left: Uint8Array = Buffer.from(text);
      while (left.length > 0) {
        try {
          left = left.subarray((await file.write(left)).bytesWritten);
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== "EAGAIN") throw error;
          await delay(systemClock, fullPipePollMs, null);
        }
      }
    },
    appendNow: (text) => ignoring(() => appendNow(path, text)),
    failed(text, error) {
      const shown = text.length > shownCharsMax ? `${text.slice(0, shownCharsMax)}...` : text.trimEnd();
      const { message } = asDiskError(error, `'${path}'`) as Error;
      process.stderr.write(`${shown} (not in the log file: ${message})\n`);
    },
  };
}

function appendNow(path: string, text: string): void {
  const fd = openSync(path, appendFlags);
  try {
    writeSync(fd, text);
  } finally {
    closeSync(fd);
  }
}

/**
 * Returns the process's stdout or stderr as a target. Node writes to files and terminals synchronously, and buffers
 * writes to pipes without a limit.
 */
export function outputTarget(stream: NodeJS.WriteStream & { readonly fd: number }): LineTarget {
  const isFile = fstatSync(stream.fd).isFile();
  // If the reader has closed the pipe, lines are lost. Without a listener, the error would end the process.
  stream.on("error", () => {});
  return {
    append: (text) => (isFile ? appendToFile(stream.fd, Buffer.from(text)) : appendToStream(stream, text)),
    // Does not block even if the reader has stopped reading, because Node makes the pipe non-blocking.
    appendNow: (text) => ignoring(() => writeSync(stream.fd, text)),
    failed: () => {},
  };
}

const writeToFile = promisify(write);

async function appendToFile(fd: number, bytes: Buffer): Promise<void> {
  for (let left = bytes; left.length > 0;) left = left.subarray((await writeToFile(fd, left)).bytesWritten);
}

function appendToStream(stream: NodeJS.WriteStream, text: string): Promise<void> | null {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const isTaken = stream.write(text, (error) => (error ? reject(error) : resolve())) && stream.writableLength === 0;
  if (!isTaken) return promise;
  promise.catch(() => {});
  return null;
}

/** Ignores errors, because the process is ending. */
function ignoring(write: () => void): void {
  try {
    write();
  } catch {}
}
