import { closeSync, fsyncSync, openSync, renameSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { parentPort } from "node:worker_threads";

/** A request to create a file with a new name. */
export interface SmallFileRequest {
  readonly id: number;
  readonly path: string;
  readonly bytes: Uint8Array;
}

/** The outcome for a file. `failure` is null if the file and its name are durable. */
export interface SmallFileReply {
  readonly id: number;
  readonly failure: { readonly message: string; readonly code: string | null } | null;
}

interface Written extends SmallFileRequest {
  readonly file: number;
}

/**
 * Writes the files of a group: first all files, then their syncs, then one sync for each folder. The first sync also
 * flushes most of the other data, so later syncs are fast. A failed file does not stop the others.
 */
function writeGroup(orders: readonly SmallFileRequest[]): SmallFileReply[] {
  const replies: SmallFileReply[] = [];
  const failed = ({ id }: SmallFileRequest, error: unknown) => {
    const { message, code = null } = error as { readonly message: string; readonly code?: string };
    replies.push({ id, failure: { message, code } });
  };
  const attempted = <Order extends SmallFileRequest, Result>(
    each: readonly Order[],
    attempt: (order: Order) => Result,
  ) =>
    each.flatMap((order) => {
      try {
        return [attempt(order)];
      } catch (error) {
        failed(order, error);
        return [];
      }
    });
  const synced = attempted(attempted(orders, write), sync);
  for (const [folder, files] of Map.groupBy(synced, ({ path }) => dirname(path))) {
    try {
      syncFolder(folder);
      for (const { id } of files) replies.push({ id, failure: null });
    } catch (error) {
      for (const file of files) failed(file, error);
    }
  }
  return replies;
}

function write(order: SmallFileRequest): Written {
  const { path, bytes } = order;
  const file = openSync(`${path}.tmp`, "wx");
  try {
    for (let at = 0; at < bytes.byteLength;) at += writeSync(file, bytes, at);
    renameSync(`${path}.tmp`, path);
    return { ...order, file };
  } catch (error) {
    closeSync(file);
    throw error;
  }
}

function sync(written: Written): SmallFileRequest {
  try {
    fsyncSync(written.file);
    return written;
  } finally {
    closeSync(written.file);
  }
}

function syncFolder(path: string): void {
  const folder = openSync(path, "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

parentPort?.on("message", (orders: readonly SmallFileRequest[]) => {
  parentPort?.postMessage(writeGroup(orders), []);
});
