import { closeSync, constants, fstatSync, openSync, write, writeSync } from "node:fs";
import { open } from "node:fs/promises";
import { promisify } from "node:util";
import { asDiskError, delay, systemClock } from "@galatea/base";
import type { LineTarget } from "./line-writer.ts";

/** A named pipe must not hold up who opens or writes it. */
const appendFlags = constants.O_APPEND | constants.O_CREAT | constants.O_WRONLY | constants.O_NONBLOCK;

/** How often a named pipe that is full is tried again: only its reader knows when there is room. */
const fullPipeLookMs = 100;
/** Of lines that the file does not take, what stderr is told. */
const shownCharsMax = 1024;

/** Opened for each text: a file that was moved away by whoever rotates logs is made anew. Throws when it cannot be opened now. */
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
          await delay(systemClock, fullPipeLookMs, null);
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

/** The process's own output. Node writes to a file or a terminal at once and waits; to a pipe later, with no bound on what waits. */
export function outputTarget(stream: NodeJS.WriteStream & { readonly fd: number }): LineTarget {
  const isFile = fstatSync(stream.fd).isFile();
  // A reader that has gone costs the lines, not the process.
  stream.on("error", () => {});
  return {
    append: (text) => (isFile ? appendToFile(stream.fd, Buffer.from(text)) : appendToStream(stream, text)),
    // Blocks where a reader has stopped, were it not for Node, which made the pipe one that does not.
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

/** The process ends: there is nobody left to tell. */
function ignoring(write: () => void): void {
  try {
    write();
  } catch {}
}
