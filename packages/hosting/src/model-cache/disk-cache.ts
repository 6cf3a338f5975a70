import { ArchiveError, type UnpackedArchive } from "../objects/index.ts";
import { type Clock, type Logger, type TaskGroup, Semaphore } from "@galatea/base";
import { ChargedSet, chooseVictims, type Charge } from "./charges.ts";
import { ModelLoadError, ModelReplacedError } from "./model-container.ts";
import type { ModelTrees } from "./model-trees.ts";
import { createModelVersion, type ModelVersion } from "./model-version.ts";

export interface DiskCacheOptions {
  readonly trees: ModelTrees;
  readonly diskBytesMax: number;
  readonly clock: Clock;
  readonly tasks: TaskGroup;
  readonly logger: Logger;
  /** By id, least recently used first. */
  readonly versions: ReadonlyMap<string, ModelVersion>;
  /** Unloads one idle model from memory, so that it may leave the disk; false when there is none. */
  readonly unloadOne: () => Promise<boolean>;
}

/** One block and one directory entry per file, so that trees of empty files are not free. */
const fileOverheadBytes = 4096;

/** Which unpacked archives one instance has, within its disk bytes. Sets `tree` of versions, and takes it away. */
export class DiskCache {
  readonly #options: DiskCacheOptions;
  readonly #charges = new ChargedSet();
  readonly #admission = new Semaphore(1);

  constructor(options: DiskCacheOptions) {
    this.#options = options;
  }

  get usedBytes(): number {
    return this.#charges.usedBytes;
  }

  /** What an earlier life of the platform has left here and fits, last unpacked last. To be asked before anything else. */
  async adopt(): Promise<readonly ModelVersion[]> {
    const { trees, diskBytesMax } = this.#options;
    const adopted: ModelVersion[] = [];
    for (const kept of (await trees.adopt()).toReversed()) {
      const version = createModelVersion(kept.target, { etag: kept.etag, byteLength: kept.archiveBytes }, 0);
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

  /** The version's tree; null where there is none, or where an adopted one is not what was unpacked: that is removed. */
  async wholeTree(version: ModelVersion, signal: AbortSignal): Promise<UnpackedArchive | null> {
    const { tree, target, isChecked } = version;
    if (tree === null || isChecked) return tree;
    version.phase = "its files are being compared with what was unpacked";
    version.isChecked = await this.#isWhole(version, tree, signal);
    if (version.isChecked) return tree;
    this.#options.logger.warning("a model's files are not what was unpacked: it is fetched again", { target });
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

  /** Resolves with the tree and the microseconds it took. Throws ModelLoadError or ModelReplacedError; nothing is left behind then. */
  async download(version: ModelVersion, signal: AbortSignal): Promise<{ tree: UnpackedArchive; durationUs: number }> {
    const { trees, clock } = this.#options;
    const startNs = clock.monotonicNs();
    const expected = (bytes: number): Charge => ({ key: version.id, ownBytes: bytes, contents: [] });
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

  /** Out of the way at once, so that the same version can be downloaded again while the old files are being deleted. */
  async remove(version: ModelVersion): Promise<void> {
    const { tree } = version;
    if (tree === null) return;
    version.tree = null;
    this.#charges.remove(version.id);
    await this.#options.trees.remove(version.id, tree);
  }

  async #reserve(charge: Charge, signal: AbortSignal): Promise<void> {
    using _turn = await this.#admission.acquire(signal);
    for (;;) {
      const victims = this.#victims(charge);
      if (victims !== null) {
        this.#charges.set(charge);
        await Promise.all(victims.map((victim) => this.remove(victim)));
        return;
      }
      // All that is not loaded is not enough: a loaded but idle model has to leave memory to leave the disk.
      if (!(await this.#options.unloadOne())) throw new ArchiveError("space", "No space left on device");
    }
  }

  /** Called while an archive is written: it must not wait, so removals run behind it. */
  #grow(charge: Charge): void {
    const victims = this.#victims(charge);
    if (victims === null) throw new ArchiveError("space", "No space left on device");
    this.#charges.set(charge);
    for (const victim of victims) this.#options.tasks.run(() => this.remove(victim));
  }

  #victims(incoming: Charge): ModelVersion[] | null {
    const capacityBytes = this.#options.diskBytesMax;
    const victims = chooseVictims(this.#charges, this.#idle(), { incoming, capacityBytes });
    return victims === null ? null : victims.flatMap(({ key }) => this.#options.versions.get(key) ?? []);
  }

  *#idle(): Generator<Charge> {
    for (const version of this.#options.versions.values()) {
      const used = version.memory !== "absent" || version.pinCount > 0 || version.load !== null;
      const charge = used || version.tree === null ? undefined : this.#charges.get(version.id);
      if (charge !== undefined) yield charge;
    }
  }
}

const chargeOf = (key: string, tree: UnpackedArchive): Charge => ({
  key,
  ownBytes: tree.ownBytes + tree.files.length * fileOverheadBytes,
  contents: tree.contents,
});
