import { renameSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { ArchiveError, type UnpackedArchive } from "../../blobs/index.ts";
import type { Clock, TaskGroup } from "../../base/index.ts";
import { ChargedSet, chooseVictims, type Charge } from "./charges.ts";
import { ModelLoadError, ModelReplacedError, type ModelSource } from "./model-container.ts";
import type { ModelVersion } from "./model-version.ts";
import { Mutex } from "./waiting.ts";

export interface DiskCacheOptions {
  /** `<ml root>/models`: a model lies in `<id>/model` below it. */
  readonly directory: string;
  readonly diskBytesMax: number;
  readonly source: ModelSource;
  readonly clock: Clock;
  readonly tasks: TaskGroup;
  /** By id, least recently used first. */
  readonly versions: ReadonlyMap<string, ModelVersion>;
  /** Unloads one idle model from memory, so that it may leave the disk; false when there is none. */
  readonly unloadOne: () => Promise<boolean>;
}

/** One block and one directory entry per file, so that trees of empty files are not free. */
const fileOverheadBytes = 4096;

/** The unpacked archives of one instance, within its disk bytes. Sets `tree` of versions, and takes it away. */
export class DiskCache {
  readonly #options: DiskCacheOptions;
  readonly #charges = new ChargedSet();
  readonly #admission = new Mutex();
  #trashCount = 0;

  constructor(options: DiskCacheOptions) {
    this.#options = options;
  }

  get usedBytes(): number {
    return this.#charges.usedBytes;
  }

  /** Resolves with the tree and the microseconds it took. Throws ModelLoadError or ModelReplacedError; nothing is left behind then. */
  async download(version: ModelVersion, signal: AbortSignal): Promise<{ tree: UnpackedArchive; durationUs: number }> {
    const { source, clock, directory } = this.#options;
    const startNs = clock.monotonicNs();
    const chargeOf = (bytes: number): Charge => ({ key: version.id, ownBytes: bytes, contents: [] });
    try {
      await this.#reserve(chargeOf(version.archiveBytes), signal);
      const tree = await source.unpack(version.target, version.etag, join(directory, version.id, "model"), {
        signal,
        onProgress: (expandedBytes) => this.#grow(chargeOf(Math.max(expandedBytes, version.archiveBytes))),
      });
      if (tree === null) throw new ModelReplacedError(version.target);
      const ownBytes = tree.ownBytes + tree.files.length * fileOverheadBytes;
      this.#charges.set({ key: version.id, ownBytes, contents: tree.contents });
      version.tree = tree;
      return { tree, durationUs: (clock.monotonicNs() - startNs) / 1000 };
    } catch (error) {
      this.#charges.remove(version.id);
      await rm(join(directory, version.id), { recursive: true, force: true });
      if (!(error instanceof ArchiveError)) throw error;
      const text = `Failed to unpack the archive of model ${version.target}: ${error.message}`;
      throw new ModelLoadError(error.reason === "space" ? 507 : 400, text, { cause: error });
    }
  }

  /** Out of the way at once, so that the same version can be downloaded again while the old files are being deleted. */
  async remove(version: ModelVersion): Promise<void> {
    const { tree } = version;
    if (tree === null) return;
    const { directory, source } = this.#options;
    const trash = join(directory, `.trash-${(this.#trashCount += 1)}`);
    version.tree = null;
    this.#charges.remove(version.id);
    renameSync(join(directory, version.id), trash);
    await rm(trash, { recursive: true, force: true });
    source.collect(tree);
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
