import { open, rename, rm, type FileHandle } from "node:fs/promises";
import { dirname } from "node:path";

/** `writev` may write less than asked without an error; what is left is written as one piece. */
export async function writePieces(
  file: FileHandle,
  buffers: readonly Buffer[],
  { offset, byteLength }: { readonly offset: number; readonly byteLength: number },
): Promise<void> {
  if (byteLength === 0) return;
  let { bytesWritten: done } = await file.writev(buffers, offset);
  if (done === byteLength) return;
  const whole = Buffer.concat(buffers);
  while (done < byteLength) done += (await file.write(whole, done, byteLength - done, offset + done)).bytesWritten;
}

/**
 * A file under a name that nothing had before, there whatever happens once this returns. The file and its folder are synced together,
 * which the disk takes as one: a name that a power failure leaves without its bytes was never answered for, and its reader finds out.
 * `others` are synced with them. On failure nothing is left.
 */
export async function createDurably(
  path: string,
  pieces: readonly Buffer[],
  others: readonly (() => Promise<void>)[] = [],
): Promise<void> {
  const aside = `${path}.tmp`;
  try {
    await using file = await open(aside, "wx");
    const byteLength = pieces.reduce((sum, piece) => sum + piece.byteLength, 0);
    await writePieces(file, pieces, { offset: 0, byteLength });
    await rename(aside, path);
    await allOf([file.sync(), syncFolder(dirname(path)), ...others.map((other) => other())]);
  } catch (error) {
    await rm(aside, { force: true });
    await rm(path, { force: true });
    throw error;
  }
}

/** A file that replaces another of its name, which stays until this one is whole: written aside, synced, renamed, and the rename synced. */
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

/** Every one has ended when this returns or throws. */
export async function allOf(tasks: readonly Promise<void>[]): Promise<void> {
  for (const each of await Promise.allSettled(tasks)) if (each.status === "rejected") throw each.reason;
}
