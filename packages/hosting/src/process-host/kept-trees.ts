import { rmSync } from "node:fs";
import { mkdir, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "@galatea/base";
import { readSealed, sealedText } from "../objects/index.ts";
import { containerModelId, type KeptTree } from "../index.ts";

/**
 * The descriptions of the trees of one instance, a file for each. A tree is described after it was unpacked whole, and no longer
 * from before it is removed: what kill -9 leaves half done has no description. They lie where no container looks.
 */
export class KeptTrees {
  readonly #models: string;
  readonly #descriptions: string;

  constructor(directories: { readonly models: string; readonly descriptions: string }) {
    this.#models = directories.models;
    this.#descriptions = directories.descriptions;
  }

  async describe(id: string, kept: KeptTree): Promise<void> {
    await mkdir(this.#descriptions, { recursive: true });
    const path = join(this.#descriptions, id);
    await writeFile(`${path}.tmp`, sealedText(kept));
    await rename(`${path}.tmp`, `${path}.json`);
  }

  /** At once: the same version may be described anew right after. */
  forget(id: string): void {
    rmSync(join(this.#descriptions, `${id}.json`), { force: true });
  }

  /** Those that are described, last unpacked last; whatever else lies in the two directories is removed. */
  async read(logger: Logger): Promise<readonly KeptTree[]> {
    await mkdir(this.#descriptions, { recursive: true });
    const found: { readonly kept: KeptTree; readonly id: string; readonly ms: number }[] = [];
    const models = new Set(await readdir(this.#models));
    for (const name of await readdir(this.#descriptions)) {
      const path = join(this.#descriptions, name);
      const id = name.slice(0, -".json".length);
      try {
        const { content: kept } = await readSealed<KeptTree>(path);
        if (`${containerModelId(kept.target, kept.etag)}.json` !== name) throw new Error("it describes another tree");
        if (!models.has(id)) throw new Error("its tree is missing");
        found.push({ kept, id, ms: (await stat(path)).mtimeMs });
      } catch (error) {
        logger.warning("an unpacked model cannot be taken over", { path, error: String(error) });
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
