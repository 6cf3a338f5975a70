import { rmSync } from "node:fs";
import { mkdir, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "@galatea/base";
import { readChecksummed, checksummedText } from "../objects/index.ts";
import { containerModelId, type AdoptableTree } from "../model-cache/index.ts";

/**
 * The descriptions of the unpacked trees of one instance: one file for each tree, which the container cannot access. `describe`
 * writes a description after the tree is complete, and `forget` removes it before the tree. A tree that `kill -9` left incomplete
 * therefore has no description.
 */
export class TreeDescriptions {
  readonly #models: string;
  readonly #descriptions: string;

  constructor(directories: { readonly models: string; readonly descriptions: string }) {
    this.#models = directories.models;
    this.#descriptions = directories.descriptions;
  }

  async describe(id: string, kept: AdoptableTree): Promise<void> {
    await mkdir(this.#descriptions, { recursive: true });
    const path = join(this.#descriptions, id);
    await writeFile(`${path}.tmp`, checksummedText(kept));
    await rename(`${path}.tmp`, `${path}.json`);
  }

  /** Removes a description synchronously, so that the same version can be described again immediately. */
  forget(id: string): void {
    rmSync(join(this.#descriptions, `${id}.json`), { force: true });
  }

  /** Returns the described trees in the order in which they were unpacked. Removes everything else from the two directories. */
  async read(logger: Logger): Promise<readonly AdoptableTree[]> {
    await mkdir(this.#descriptions, { recursive: true });
    const found: { readonly kept: AdoptableTree; readonly id: string; readonly ms: number }[] = [];
    const models = new Set(await readdir(this.#models));
    for (const name of await readdir(this.#descriptions)) {
      const path = join(this.#descriptions, name);
      const id = name.slice(0, -".json".length);
      try {
        const { content: kept } = await readChecksummed<AdoptableTree>(path);
        if (`${containerModelId(kept.target, kept.etag)}.json` !== name) throw new Error("it describes another tree");
        if (!models.has(id)) throw new Error("its tree is missing");
        found.push({ kept, id, ms: (await stat(path)).mtimeMs });
      } catch (error) {
        logger.warning("an unpacked model cannot be adopted", { path, error: String(error) });
        await rm(path, { recursive: true, force: true });
      }
    }
    const known = new Set(found.map(({ id }) => id));
    for (const name of models) {
      if (!known.has(name)) await rm(join(this.#models, name), { recursive: true, force: true });
    }
    return found.toSorted((a, b) => a.ms - b.ms).map(({ kept }) => kept);
  }
}
