import { renameSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "@galatea/base";
import {
  nullIfAbsent,
  ArchiveError,
  deleteUnlinkedContents,
  type ArchiveUnpacker,
  type ObjectStore,
  type UnpackedArchive,
} from "../objects/index.ts";
import { parseS3Uri } from "../definitions/index.ts";
import type { AdoptableTree, ModelArchive, UnpackedModels } from "../model-cache/index.ts";
import { TreeDescriptions } from "./tree-descriptions.ts";

export interface DirectoryTreesOptions {
  /** The directory `<ml root>/models`, which must exist. A model is unpacked to `<id>/model` in it. */
  readonly models: string;
  /**
   * The directory for descriptions of trees, which the next run of the platform reads. The container cannot access it.
   */
  readonly descriptions: string;
  /** The S3 prefix of the archives. */
  readonly modelDataUrl: string;
  readonly store: ObjectStore;
  readonly unpacker: ArchiveUnpacker;
  readonly logger: Logger;
}

/** The unpacked models of one instance, in a local directory. Equal files of all instances are hard links to one file. */
export class DirectoryTrees implements UnpackedModels {
  readonly #options: DirectoryTreesOptions;
  readonly #kept: TreeDescriptions;
  readonly #location: { readonly bucket: string; readonly key: string };
  #trashCount = 0;

  constructor(options: DirectoryTreesOptions) {
    const { models, descriptions, modelDataUrl } = options;
    const location = parseS3Uri(modelDataUrl);
    if (location === null) throw new Error(`not an S3 location: ${modelDataUrl}`);
    this.#options = options;
    this.#location = location;
    this.#kept = new TreeDescriptions({ models, descriptions });
  }

  get headAgeMsMax(): number {
    return this.#options.store.headAgeMsMax;
  }

  adopt(): Promise<readonly AdoptableTree[]> {
    return this.#kept.read(this.#options.logger);
  }

  async find(
    target: string,
    signal: AbortSignal,
  ): Promise<{ readonly etag: string; readonly byteLength: number } | null> {
    signal.throwIfAborted();
    const { bucket, key } = this.#location;
    return await nullIfAbsent(this.#options.store.head(bucket, `${key}${target}`));
  }

  async unpack(
    model: ModelArchive,
    options: { readonly signal: AbortSignal; readonly onProgress: (expandedBytes: number) => void },
  ): Promise<UnpackedArchive | null> {
    const { id, target, etag, archiveBytes } = model;
    try {
      const tree = await this.#unpackVersion(model, options);
      if (tree === null) return null;
      await this.#kept.describe(id, { target, etag, archiveBytes, tree }).catch((cause: unknown) => {
        throw ArchiveError.from(cause);
      });
      return tree;
    } catch (error) {
      this.#kept.forget(id);
      await rm(join(this.#options.models, id), { recursive: true, force: true });
      throw error;
    }
  }

  async #unpackVersion(
    { id, target, etag }: ModelArchive,
    options: { readonly signal: AbortSignal; readonly onProgress: (expandedBytes: number) => void },
  ): Promise<UnpackedArchive | null> {
    const { store, unpacker } = this.#options;
    const object = await nullIfAbsent(store.get(this.#location.bucket, `${this.#location.key}${target}`));
    if (object === null) return null;
    if (object.head.etag !== etag) {
      object.body.destroy();
      return null;
    }
    return await unpacker.unpack(object.body, this.#pathOf(id), options);
  }

  isWhole(id: string, tree: UnpackedArchive, signal: AbortSignal): Promise<boolean> {
    return this.#options.unpacker.check(this.#pathOf(id), tree, signal);
  }

  async remove(id: string, tree: UnpackedArchive): Promise<void> {
    const { models } = this.#options;
    const trash = join(models, `.trash-${(this.#trashCount += 1)}`);
    this.#kept.forget(id);
    renameSync(join(models, id), trash);
    await rm(trash, { recursive: true, force: true });
    this.#collect(tree);
  }

  /** Removes shared files of a removed tree to which no other tree links. */
  #collect(tree: UnpackedArchive): void {
    const { unpacker, logger } = this.#options;
    if (unpacker.contentDirectory === null) return;
    try {
      deleteUnlinkedContents(unpacker.contentDirectory, tree.contents);
    } catch (error) {
      logger.error("shared model files could not be removed", { error: String(error) });
    }
  }

  #pathOf(id: string): string {
    return join(this.#options.models, id, "model");
  }
}
