import type { UnpackedArchive } from "../objects/index.ts";
import type { AdoptableTree, ModelArchive, UnpackedModels } from "./model-trees.ts";

/** A disk that survives a restart of the platform in a test: trees by model id, in the order in which they were unpacked. */
export class MemoryDisk {
  readonly kept = new Map<string, AdoptableTree>();
  readonly damaged = new Set<string>();
}

const nextTick = () => new Promise((resolve) => setImmediate(resolve));

/** In-memory trees with asynchronous calls. `find` returns the object of a target. */
export class MemoryTrees implements UnpackedModels {
  headAgeMsMax = 0;
  readonly disk: MemoryDisk;
  readonly #find: (target: string) => { readonly etag: string; readonly bytes: number } | undefined;
  readonly #unpacked: (target: string) => void;

  constructor(
    disk: MemoryDisk,
    options: {
      readonly find: (target: string) => { readonly etag: string; readonly bytes: number } | undefined;
      readonly unpacked: (target: string) => void;
    },
  ) {
    this.disk = disk;
    this.#find = options.find;
    this.#unpacked = options.unpacked;
  }

  async adopt(): Promise<readonly AdoptableTree[]> {
    await nextTick();
    return [...this.disk.kept.values()];
  }

  async find(target: string): Promise<{ readonly etag: string; readonly byteLength: number } | null> {
    await nextTick();
    const object = this.#find(target);
    return object === undefined ? null : { etag: object.etag, byteLength: object.bytes };
  }

  async unpack(
    { id, target, etag, archiveBytes }: ModelArchive,
    { signal, onProgress }: { readonly signal: AbortSignal; readonly onProgress: (expandedBytes: number) => void },
  ): Promise<UnpackedArchive | null> {
    this.#unpacked(target);
    const object = this.#find(target);
    if (object === undefined || object.etag !== etag) return null;
    if (this.disk.kept.has(id)) throw new Error(`${target} is there already`);
    await nextTick();
    signal.throwIfAborted();
    onProgress(object.bytes);
    const tree = {
      files: [{ path: "model.py", byteLength: object.bytes, sha256: etag }],
      places: [],
      expandedBytes: object.bytes,
      ownBytes: object.bytes,
      contents: [],
      fingerprint: `${target} ${etag}`,
    };
    this.disk.damaged.delete(id);
    this.disk.kept.set(id, { target, etag, archiveBytes, tree });
    return tree;
  }

  async isWhole(id: string): Promise<boolean> {
    await nextTick();
    return this.disk.kept.has(id) && !this.disk.damaged.has(id);
  }

  async remove(id: string): Promise<void> {
    this.disk.kept.delete(id);
    await nextTick();
  }
}
