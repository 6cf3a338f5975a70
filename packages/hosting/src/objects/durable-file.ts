import { open, rename, rm, type FileHandle } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * Writes all buffers at an offset. `writev` may write fewer bytes without an error; the remaining bytes are then
 * written as one buffer.
 */
export async function writeBuffers(
  file: FileHandle,
  buffers: readonly Buffer[],
  { offset, byteLength }: { readonly offset: number; readonly byteLength: number },
): Promise<void> {
  if (byteLength === 0) return;
  let { bytesWritten: done } = await file.writev(buffers, offset);
  if (done === byteLength) return;
  const complete = Buffer.concat(buffers);
  while (done < byteLength) done += (await file.write(complete, done, byteLength - done, offset + done)).bytesWritten;
}

/**
 * Creates a file with a new name. The file is durable when this resolves. The file and its folder are synced
 * concurrently, which the disk does in one flush. After a power failure, the name may therefore exist without its
 * bytes. Such a write was never acknowledged, and readers detect it. `others` run concurrently with the syncs. On
 * failure, the file is removed.
 */
export async function createDurably(
  path: string,
  buffers: readonly Buffer[],
  others: readonly (() => Promise<void>)[] = [],
): Promise<void> {
  const aside = `${path}.tmp`;
  try {
    await using file = await open(aside, "wx");
    const byteLength = buffers.reduce((sum, chunk) => sum + chunk.byteLength, 0);
    await writeBuffers(file, buffers, { offset: 0, byteLength });
    await rename(aside, path);
    await awaitAll([file.sync(), syncFolder(dirname(path)), ...others.map((other) => other())]);
  } catch (error) {
    await rm(aside, { force: true });
    await rm(path, { force: true });
    throw error;
  }
}

/** Replaces a file atomically and durably: writes a temporary file, syncs, renames, and syncs the rename. */
export async function replaceDurably(path: string, text: string): Promise<void> {
  const aside = `${path}.tmp`;
  try {
    await using file = await open(aside, "w");
    await file.writeFile(text);
    await file.sync();
  } catch (error) {
    await rm(aside, { force: true });
    throw error;
  }
  await rename(aside, path);
  await syncFolder(dirname(path));
}

export async function syncFile(path: string): Promise<void> {
  await using file = await open(path, "r");
  await file.sync();
}

export async function syncFolder(path: string): Promise<void> {
  await syncFile(path);
}

/** Waits until all tasks have ended. Then rejects with the first error, if any. */
export async function awaitAll(tasks: readonly Promise<void>[]): Promise<void> {
  for (const each of await Promise.allSettled(tasks)) if (each.status === "rejected") throw each.reason;
}
