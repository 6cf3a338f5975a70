import { ArchiveError, type UnpackedArchive } from "../objects/index.ts";
import { type Clock, type Logger, type TaskGroup, Semaphore } from "@galatea/base";
import { ModelCostSet, chooseEvictions, type ModelCost } from "./load-costs.ts";
import { ModelLoadError, ModelReplacedError } from "./model-container.ts";
import type { UnpackedModels } from "./model-trees.ts";
import { createModelVersion, type ModelVersion } from "./model-version.ts";

export interface DiskCacheOptions {
  readonly trees: UnpackedModels;
  readonly diskBytesMax: number;
  readonly clock: Clock;
  readonly tasks: TaskGroup;
  readonly logger: Logger;
  /** By id, least recently used first. */
  readonly versions: ReadonlyMap<string, ModelVersion>;
  /** Unloads one idle model from memory, so that its files can be evicted from the disk. Resolves with false if no model is idle. */
  readonly unloadOne: () => Promise<boolean>;
}

/**
 * Bytes that each file costs in addition to its content: one block and one directory entry. Without this cost, a tree of empty files would cost
 * nothing.
 */
const fileOverheadBytes = 4096;

/** The unpacked archives of one instance. Their total size is at most `diskBytesMax`. Only this class sets and clears `ModelVersion.tree`. */
export class DiskCache {
  readonly #options: DiskCacheOptions;
  readonly #charges = new ModelCostSet();
  readonly #admission = new Semaphore(1);

  constructor(options: DiskCacheOptions) {
    this.#options = options;
  }

  get usedBytes(): number {
    return this.#charges.usedBytes;
  }

  /**
   * Adopts the trees of a previous run, in the order in which they were unpacked. If not all fit, the oldest trees are removed. Call it before any
   * other method.
   */
  async adopt(): Promise<readonly ModelVersion[]> {
    const { trees, diskBytesMax } = this.#options;
    const adopted: ModelVersion[] = [];
    for (const kept of (await trees.adopt()).toReversed()) {
      const version = createModelVersion(kept.target, { etag: kept.etag, byteLength: kept.archiveBytes }, -Infinity);
      const { id } = version;
      const charge = chargeOf(id, kept.tree);
      if (this.#charges.usedBytes + this.#charges.costOf(charge) <= diskBytesMax) {
        this.#charges.set(charge);
        version.tree = kept.tree;
        version.isChecked = false;
        adopted.push(version);
        continue;
      }
      await trees.remove(id, kept.tree);
    }
    return adopted.toReversed();
  }

  /**
   * Resolves with the version's tree; null if there is none. Checks the files of an adopted tree once, and removes the tree if they have changed.
   */
  async wholeTree(version: ModelVersion, signal: AbortSignal): Promise<UnpackedArchive | null> {
    const { tree, target, isChecked } = version;
    if (tree === null || isChecked) return tree;
    version.phase = "its files are being checked for changes";
    version.isChecked = await this.#isWhole(version, tree, signal);
    if (version.isChecked) return tree;
    this.#options.logger.warning("a model's files have changed since they were unpacked: it is downloaded again", {
      target,
    });
    await this.remove(version);
    return null;
  }

  async #isWhole({ id, target }: ModelVersion, tree: UnpackedArchive, signal: AbortSignal): Promise<boolean> {
    const { trees, logger } = this.#options;
    try {
      return await trees.isWhole(id, tree, signal);
    } catch (error) {
      if (!(error instanceof ArchiveError)) throw error;
      logger.warning("an unpacked model could not be read", { target, error: error.message });
      return false;
    }
  }

  /** Downloads and unpacks an archive. Rejects with ModelLoadError or ModelReplacedError; no files are left after an error. */
  async download(version: ModelVersion, signal: AbortSignal): Promise<{ tree: UnpackedArchive; durationUs: number }> {
    const { trees, clock } = this.#options;
    const startNs = clock.monotonicNs();
    const expected = (bytes: number): ModelCost => ({ key: version.id, ownBytes: bytes, contents: [] });
    try {
      await this.#reserve(expected(version.archiveBytes), signal);
      const tree = await trees.unpack(version, {
        signal,
        onProgress: (expandedBytes) => this.#grow(expected(Math.max(expandedBytes, version.archiveBytes))),
      });
      if (tree === null) throw new ModelReplacedError(version.target);
      this.#charges.set(chargeOf(version.id, tree));
      version.tree = tree;
      version.isChecked = true;
      return { tree, durationUs: (clock.monotonicNs() - startNs) / 1000 };
    } catch (error) {
      this.#charges.remove(version.id);
      if (!(error instanceof ArchiveError)) throw error;
      const text = `Failed to unpack the archive of model ${version.target}: ${error.message}`;
      throw new ModelLoadError(error.reason === "space" ? 507 : 400, text, { cause: error });
    }
  }

  /** Removes a version's tree. The tree is hidden synchronously, so that the same version can be downloaded while the old files are deleted. */
  async remove(version: ModelVersion): Promise<void> {
    const { tree } = version;
    if (tree === null) return;
    version.tree = null;
    this.#charges.remove(version.id);
    await this.#options.trees.remove(version.id, tree);
  }

  async #reserve(charge: ModelCost, signal: AbortSignal): Promise<void> {
    using _lock = await this.#admission.acquire(signal);
    for (;;) {
      const victims = this.#victims(charge);
      if (victims !== null) {
        this.#charges.set(charge);
        await Promise.all(victims.map((victim) => this.remove(victim)));
        return;
      }
      // Evicting all models that are not loaded frees too little. An idle model is unloaded, so that its files can be evicted.
      if (!(await this.#options.unloadOne())) throw new ArchiveError("space", "No space left on device");
    }
  }

  /** Raises a reservation while an archive is being written. It must be synchronous; evicted trees are removed in the background. */
  #grow(charge: ModelCost): void {
    const victims = this.#victims(charge);
    if (victims === null) throw new ArchiveError("space", "No space left on device");
    this.#charges.set(charge);
    for (const victim of victims) this.#options.tasks.run(() => this.remove(victim));
  }

  #victims(incoming: ModelCost): ModelVersion[] | null {
    const capacityBytes = this.#options.diskBytesMax;
    const victims = chooseEvictions(this.#charges, this.#idle(), { incoming, capacityBytes });
    return victims === null ? null : victims.flatMap(({ key }) => this.#options.versions.get(key) ?? []);
  }

  *#idle(): Generator<ModelCost> {
    for (const version of this.#options.versions.values()) {
      const used = version.memory !== "absent" || version.pinCount > 0 || version.load !== null;
      const charge = used || version.tree === null ? undefined : this.#charges.get(version.id);
      if (charge !== undefined) yield charge;
    }
  }
}

const chargeOf = (key: string, tree: UnpackedArchive): ModelCost => ({
  key,
  ownBytes: tree.ownBytes + tree.files.length * fileOverheadBytes,
  contents: tree.contents,
});
