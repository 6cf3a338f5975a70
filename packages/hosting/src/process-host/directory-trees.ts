import { renameSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "@galatea/base";
import {
  ArchiveError,
  collectContents,
  type ArchiveUnpacker,
  type ObjectStore,
  type UnpackedArchive,
} from "../objects/index.ts";
import { absentAsNull, parseS3Uri, type KeptTree, type ModelArchive, type ModelTrees } from "../index.ts";
import { KeptTrees } from "./kept-trees.ts";

export interface DirectoryTreesOptions {
  /** `<ml root>/models`, which exists when it is used: a model lies in `<id>/model` below it. */
  readonly models: string;
  /** Where the trees are described for the platform's next life; no container looks there. */
  readonly descriptions: string;
  /** The prefix of the archives. */
  readonly modelDataUrl: string;
  readonly store: ObjectStore;
  readonly unpacker: ArchiveUnpacker;
  readonly logger: Logger;
}

/** The unpacked models of one instance in a directory of this machine; equal files of all instances are kept once. */
export class DirectoryTrees implements ModelTrees {
  readonly #options: DirectoryTreesOptions;
  readonly #kept: KeptTrees;
  readonly #place: { readonly bucket: string; readonly key: string };
  #trashCount = 0;

  constructor(options: DirectoryTreesOptions) {
    const { models, descriptions, modelDataUrl } = options;
    const place = parseS3Uri(modelDataUrl);
    if (place === null) throw new Error(`not an S3 location: ${modelDataUrl}`);
    this.#options = options;
    this.#place = place;
    this.#kept = new KeptTrees({ models, descriptions });
  }

  adopt(): Promise<readonly KeptTree[]> {
    return this.#kept.read(this.#options.logger);
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
    const object = await absentAsNull(store.get(this.#place.bucket, `${this.#place.key}${target}`));
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

  /** Removes the shared files that no tree holds any more. */
  #collect(tree: UnpackedArchive): void {
    const { unpacker, logger } = this.#options;
    if (unpacker.contentDirectory === null) return;
    try {
      collectContents(unpacker.contentDirectory, tree.contents);
    } catch (error) {
      logger.error("shared model files were not collected", { error: String(error) });
    }
  }

  #pathOf(id: string): string {
    return join(this.#options.models, id, "model");
  }
}
