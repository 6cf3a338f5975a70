import { createHash } from "node:crypto";
import type { BigIntStats } from "node:fs";
import { open, readdir, stat } from "node:fs/promises";
import { join, relative } from "node:path";
import { InferenceError } from "@galatea/base";

/** A model on disk: the file to open, and a key that is equal for models with the same content, in any directory. */
export interface ModelFiles {
  readonly modelPath: string;
  readonly contentKey: string;
  readonly byteLength: number;
}

interface FileIdentity {
  readonly path: string;
  readonly byteLength: number;
  /**
   * Identity of a file: device, inode, size, and times of birth and modification. As long as the identity is equal, the content is assumed
   * to be equal.
   */
  readonly key: string;
}

const filesMax = 10_000;
const hashesMax = 10_000;
const chunkBytes = 1024 * 1024;

/**
 * Finds models and hashes their files. A file is hashed again only after it changes, even if it has many names (hard links). Thousands of
 * directories with hard links to the same weights cost one hash.
 */
export class ModelFileIndex {
  /** Hashes by file identity, ordered by last use. */
  readonly #hashes = new Map<string, Promise<string>>();

  /**
   * Finds the files of a model. `model.onnx` may be a file, or a directory that contains one. The key covers all files in the same
   * directory, because weights may be in them. Throws UNAVAILABLE if there is no model.
   */
  async find(versionDirectory: string, fileName: string, modelName: string): Promise<ModelFiles> {
    const desired = join(versionDirectory, fileName);
    const kind = await kindOf(desired);
    if (kind === "absent") throw missing(desired, modelName);
    const modelPath = kind === "directory" ? join(desired, "model.onnx") : desired;
    if (kind === "directory" && (await kindOf(modelPath)) !== "file") throw missing(modelPath, modelName);
    const root = kind === "directory" ? desired : versionDirectory;
    const files = await listFiles(root);
    const hash = createHash("sha256").update(relative(root, modelPath));
    for (const file of files) {
      hash.update(`\0${relative(root, file.path)}\0${file.byteLength}\0`).update(await this.#hashOf(file));
    }
    return {
      modelPath,
      contentKey: hash.digest("hex"),
      byteLength: files.reduce((sum, file) => sum + file.byteLength, 0),
    };
  }

  async #hashOf(file: FileIdentity): Promise<string> {
    const known = this.#hashes.get(file.key);
    this.#hashes.delete(file.key);
    const hash = known ?? hashFile(file);
    this.#hashes.set(file.key, hash);
    if (this.#hashes.size > hashesMax) this.#hashes.delete(this.#hashes.keys().next().value as string);
    try {
      return await hash;
    } catch (error) {
      this.#hashes.delete(file.key);
      throw error;
    }
  }
}

async function kindOf(path: string): Promise<"file" | "directory" | "absent"> {
  try {
    return (await stat(path)).isDirectory() ? "directory" : "file";
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT" || (error as NodeJS.ErrnoException).code === "ENOTDIR") {
      return "absent";
    }
    throw error;
  }
}

async function listFiles(directory: string): Promise<readonly FileIdentity[]> {
  const files: FileIdentity[] = [];
  const walk = async (current: string): Promise<void> => {
    const entries = await readdir(current, { withFileTypes: true });
    for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
      const path = join(current, entry.name);
      const found = await unlessGone(stat(path, { bigint: true }));
      // The file was removed after the directory was listed, or is a dangling link.
      if (found === null) continue;
      if (found.isDirectory()) await walk(path);
      else if (found.isFile()) files.push(identityOf(path, found));
      if (files.length > filesMax) {
        throw new InferenceError("UNAVAILABLE", `'${directory}' has more than ${filesMax} files`);
      }
    }
  };
  await walk(directory);
  return files;
}

function identityOf(path: string, found: BigIntStats): FileIdentity {
  // The time of birth distinguishes a new file from a deleted one that had the same inode, size and (archived) modification time. The time
  // of the last status change is not used, because a new hard link changes it.
  const key = `${found.dev}:${found.ino}:${found.size}:${found.mtimeNs}:${found.birthtimeNs}`;
  return { path, byteLength: Number(found.size), key };
}

/** Resolves with the result of the file system call `looking`; null if the path does not exist. */
async function unlessGone<Found>(looking: Promise<Found>): Promise<Found | null> {
  try {
    return await looking;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}

async function hashFile(file: FileIdentity): Promise<string> {
  await using handle = await unlessGone(open(file.path, "r"));
  if (handle === null) throw fileChanged(file);
  const hash = createHash("sha256");
  const chunk = Buffer.allocUnsafeSlow(Math.min(chunkBytes, Math.max(1, file.byteLength)));
  for (;;) {
    const { bytesRead } = await handle.read(chunk, 0, chunk.byteLength, null);
    if (bytesRead === 0) break;
    hash.update(chunk.subarray(0, bytesRead));
  }
  if (identityOf(file.path, await handle.stat({ bigint: true })).key !== file.key) {
    throw fileChanged(file);
  }
  return hash.digest("hex");
}

function fileChanged({ path }: FileIdentity): InferenceError {
  return new InferenceError("UNAVAILABLE", `'${path}' changed while it was read`);
}

function missing(path: string, modelName: string): InferenceError {
  return new InferenceError("UNAVAILABLE", `unable to find '${path}' for model instance '${modelName}'`);
}
