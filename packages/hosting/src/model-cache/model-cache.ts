import type { UnpackedArchive } from "../objects/index.ts";
import { ChangeNotifier, openDeadline, rejectOnAbort, Semaphore, TaskGroup } from "@galatea/base";
import type { ModelCacheLease, ModelCacheOptions } from "./model-cache-options.ts";
import { adoptModels, measuredOwnBytes } from "./adopted-models.ts";
import { ModelCostSet, costBytes, LoadCostHistory, chooseEvictions, limitCost, type ModelCost } from "./load-costs.ts";
import { DiskCache } from "./disk-cache.ts";
import { createModelVersion, type ModelMemoryState, type ModelVersion as Version } from "./model-version.ts";
import { notEnoughMemoryText, type MemoryShare } from "../nodes/index.ts";
import {
  ContainerEndedError,
  ModelLoadError,
  ModelMissingError,
  ModelNotReadyError,
  ModelReplacedError,
  type ListedModel,
  type ModelContainer,
} from "./model-container.ts";
import { ObjectComparison } from "./object-comparison.ts";
import { ModelUnloads } from "./model-unloads.ts";
import type { ModelsMemory, ModelState } from "./models-view.ts";

const learnedEntriesMax = 20_000;
/** Maximum number of attempts of a load when the container ends during it. */
const loadAttemptsMax = 2;
const costFloorBytes = 1024 * 1024;

/**
 * The models of one multi-model container: archives on disk and models in the container's memory, each within a budget. If a budget is
 * exceeded or the container responds with 507, the least recently used idle model is evicted. A model with requests in flight is never
 * evicted. Requests for one cold model share one load, which continues if they stop waiting. A version is identified by the ETag of its
 * object. A replaced object is a new version, and the old version is removed when no request uses it.
 */
export class ModelCache implements AsyncDisposable {
  readonly #options: ModelCacheOptions;
  /** By id, least recently used first. */
  readonly #versions = new Map<string, Version>();
  readonly #current = new Map<string, Version>();
  readonly #memory = new ModelCostSet();
  readonly #disk: DiskCache;
  readonly #costs = new LoadCostHistory({ entriesMax: learnedEntriesMax, floorBytes: costFloorBytes });
  readonly #tasks: TaskGroup;
  readonly #loads: Semaphore;
  readonly #unloads: ModelUnloads;
  readonly #admission = new Semaphore(1);
  readonly #changed = new ChangeNotifier();
  readonly #share: MemoryShare;
  readonly #comparison: ObjectComparison;
  #waiterCount = 0;

  constructor(options: ModelCacheOptions) {
    this.#options = options;
    this.#share = options.joinMemory(this);
    this.#tasks = new TaskGroup((error) => {
      options.logger.error("a task of the model cache failed", { error: String(error) });
    });
    const currentVersion = (target: string) => this.#current.get(target);
    this.#comparison = new ObjectComparison({ ...options, tasks: this.#tasks, currentVersion });
    this.#loads = new Semaphore(options.limits.loadsMax);
    this.#unloads = new ModelUnloads({
      cache: options,
      tasks: this.#tasks,
      memoryChanged: (version, memory) => this.#setMemory(version, memory),
      ended: (version) => this.#forgetIfUnused(version),
    });
    const { trees, clock, logger } = options;
    const { diskBytesMax } = options.limits;
    const shared = { trees, diskBytesMax, clock, logger, tasks: this.#tasks };
    this.#disk = new DiskCache({ ...shared, versions: this.#versions, unloadOne: () => this.evictIdleModel() });
  }

  /** If false, a model is removed from memory and disk after its last request. */
  get keepsModels(): boolean {
    return this.#options.limits.keepsModels;
  }

  get memoryUsedBytes(): number {
    return this.#memory.usedBytes;
  }

  get diskUsedBytes(): number {
    return this.#disk.usedBytes;
  }

  /** The memory that the models use, and the maximum that they may use now. */
  get memory(): ModelsMemory {
    return { usedBytes: this.#memory.usedBytes, capacityBytes: this.#capacityBytes };
  }

  /** Returns loaded and loading models, least recently used first. */
  states(): readonly ModelState[] {
    return [...this.#versions.values()]
      .filter(({ memory, load }) => memory === "loaded" || load !== null)
      .map((version) => this.#stateOf(version));
  }

  /** Unloads a model if no request uses it. The model's files stay on the disk. */
  release(id: string): void {
    const version = this.#versions.get(id);
    if (version !== undefined && version.pinCount === 0) this.#tasks.run(() => this.#unloads.unload(version));
  }

  /** Compares a model with its object, which another container found replaced. Removes an outdated version. */
  recheck(target: string): void {
    if (!this.#current.has(target)) return;
    this.#tasks.run((signal) => this.#comparison.compare(target, signal, (version) => this.#removeVersion(version)));
  }

  /** Adopts models that a previous run unpacked on this disk, loaded or not. Unloads all other models of the container. */
  async adopt(loaded: readonly ListedModel[]): Promise<void> {
    const { memoryBytesMax } = this.#options.limits;
    const on = { disk: this.#disk, memory: this.#memory, costs: this.#costs, memoryBytesMax };
    const { versions, unknownIds } = await adoptModels(loaded, on);
    for (const { version, isLoaded } of versions) {
      const before = this.#current.get(version.target);
      this.#versions.set(version.id, version);
      this.#current.set(version.target, version);
      if (isLoaded) this.#setMemory(version, "loaded");
      if (before !== undefined) this.#removeVersion(before);
      if (!this.keepsModels) this.#removeVersion(version);
    }
    for (const id of unknownIds) this.#unloads.unloadUnknown(id);
    this.#tasks.run(() => this.#fitMemory());
  }

  /** Resolves when the model is loaded. Rejects with ModelMissingError, ModelLoadError, ModelNotReadyError, or the signal's reason. */
  async acquire(target: string, signal: AbortSignal): Promise<ModelCacheLease> {
    const requestedNs = this.#options.clock.monotonicNs();
    for (;;) {
      try {
        return await this.#acquireVersion(target, requestedNs, signal);
      } catch (error) {
        // The object was replaced during the wait. The request waits for the new version, within the original time limit.
        if (!(error instanceof ModelReplacedError)) throw error;
      }
    }
  }

  async #acquireVersion(target: string, requestedNs: number, signal: AbortSignal): Promise<ModelCacheLease> {
    const { clock, limits } = this.#options;
    const version = await this.#versionNow(target, signal);
    this.#touch(version);
    version.pinCount += 1;
    this.#options.observer.used(version.id, version.pinCount, version.usedNs);
    let leased = false;
    try {
      const cacheHit = version.memory === "loaded";
      if (!cacheHit) {
        if (this.#waiterCount >= limits.waitersMax) throw new ModelNotReadyError("too many requests wait for models");
        this.#waiterCount += 1;
        try {
          await this.#waitForLoad(version, requestedNs, signal);
        } finally {
          this.#waiterCount -= 1;
        }
      }
      leased = true;
      let released = false;
      return {
        id: version.id,
        cacheHit,
        waitedUs: (clock.monotonicNs() - requestedNs) / 1000,
        [Symbol.dispose]: () => {
          if (released) return;
          released = true;
          this.#unpin(version);
        },
      };
    } finally {
      if (!leased) this.#unpin(version);
    }
  }

  /** Marks a model as not loaded, because the container responded with 404. The next `acquire` loads it again. */
  forget(id: string): void {
    const version = this.#versions.get(id);
    if (version?.memory === "loaded") this.#setMemory(version, "absent");
  }

  /** Marks all models as not loaded, because the container has ended. Leases stay valid until they are disposed. */
  containerLost(): void {
    for (const version of this.#versions.values()) {
      if (version.memory === "loaded") this.#setMemory(version, "absent");
    }
  }

  /** Unloads the least recently used idle model, because the container responded with 507. Resolves with false if no model is idle. */
  async evictIdleModel(): Promise<boolean> {
    const victim = this.#idleLoaded().next().value;
    if (victim === undefined) return false;
    await this.#unloads.unload(victim);
    return true;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tasks[Symbol.asyncDispose]();
    this.#share[Symbol.dispose]();
  }

  get #capacityBytes(): number {
    return Math.min(this.#options.limits.memoryBytesMax, this.#share.availableBytes());
  }

  async #versionNow(target: string, signal: AbortSignal): Promise<Version> {
    const { clock, trees } = this.#options;
    const known = this.#current.get(target);
    if (known !== undefined && trees.headAgeMsMax > 0) {
      await this.#comparison.compareOnceInAge(known, signal, (version) => this.#outdate(version));
      if (this.#current.get(target) === known) return known;
    }
    const found = await trees.find(target, signal);
    const current = this.#current.get(target);
    if (current !== undefined && current.etag === found?.etag) {
      current.checkedNs = clock.monotonicNs();
      return current;
    }
    if (current !== undefined) this.#outdate(current);
    if (found === null) throw new ModelMissingError(target);
    return this.#openVersion(target, found);
  }

  #outdate(version: Version): void {
    this.#removeVersion(version);
    this.#options.observer.outdated(version.target);
  }

  #openVersion(target: string, found: { readonly etag: string; readonly byteLength: number }): Version {
    const opened = createModelVersion(target, found, this.#options.clock.monotonicNs());
    // If the object has returned to an earlier ETag whose version is still being removed, that version is reused.
    const version = this.#versions.get(opened.id) ?? opened;
    version.retired = false;
    version.checkedNs = opened.checkedNs;
    this.#versions.set(version.id, version);
    this.#current.set(target, version);
    this.#notify(version);
    return version;
  }

  #touch(version: Version): void {
    version.usedNs = this.#options.clock.monotonicNs();
    this.#versions.delete(version.id);
    this.#versions.set(version.id, version);
  }

  async #waitForLoad(version: Version, requestedNs: number, signal: AbortSignal): Promise<void> {
    const { clock, limits } = this.#options;
    const afterMs = Math.max(0, limits.waitMsMax - (clock.monotonicNs() - requestedNs) / 1e6);
    using deadline = openDeadline({ clock, afterMs, signal, createError: () => new ModelNotReadyError(version.phase) });
    // Loops only when the container ended between the end of the load and this continuation.
    while (version.memory !== "loaded") {
      if (version.load === null) {
        version.load = this.#startLoad(version);
        this.#notify(version);
      }
      await rejectOnAbort(version.load, deadline.signal);
    }
  }

  #startLoad(version: Version): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    // Waiters handle the rejection. Without this line, a failed load without waiters would be an unhandled rejection.
    promise.catch(() => {});
    this.#tasks.run(async (signal) => {
      const { clock, limits, logger } = this.#options;
      const late = () => new ModelLoadError(503, `the load did not end within ${limits.loadMsMax / 1000} s`);
      using deadline = openDeadline({ clock, afterMs: limits.loadMsMax, signal, createError: late });
      try {
        await this.#load(version, deadline.signal);
        version.load = null;
        resolve();
      } catch (error) {
        version.load = null;
        if (error instanceof ModelReplacedError) this.#removeVersion(version);
        else if (!signal.aborted)
          logger.warning("a model did not load", { target: version.target, error: String(error) });
        reject(signal.aborted ? new ModelLoadError(503, "the instance is stopped", { cause: error }) : error);
      } finally {
        this.#notify(version);
        this.#changed.notify();
        this.#forgetIfUnused(version);
      }
    });
    return promise;
  }

  async #load(version: Version, signal: AbortSignal): Promise<void> {
    version.phase = "it waits until it may load";
    using _slot = await this.#loads.acquire(signal);
    // An unload of this version may still be in progress; the load must start after it.
    if (version.unload !== null) await rejectOnAbort(version.unload, signal);
    const tree = (await this.#disk.wholeTree(version, signal)) ?? (await this.#download(version, signal));
    for (let attempt = 1; ; attempt += 1) {
      try {
        await this.#loadOnce(version, tree, signal);
        return;
      } catch (error) {
        if (!(error instanceof ContainerEndedError)) throw error;
        // Another model may have crashed the container, so the load is retried once. A second crash is attributed to this model.
        const message = `the container ended while it loaded the model: ${String(error.cause)}`;
        if (attempt >= loadAttemptsMax) throw new ModelLoadError(503, message, { cause: error });
        this.#options.logger.warning("a model's load is retried", { target: version.target, reason: message });
      }
    }
  }

  async #loadOnce(version: Version, tree: UnpackedArchive, signal: AbortSignal): Promise<void> {
    version.phase = "it waits for the container";
    const container = await this.#options.container(signal);
    version.phase = "it waits for memory";
    const charge = await this.#reserveMemory(version, tree, signal);
    try {
      await this.#loadReserved(version, tree, { container, charge, signal });
    } catch (error) {
      if (version.memory === "loading") this.#setMemory(version, "absent");
      throw error;
    }
  }

  async #download(version: Version, signal: AbortSignal): Promise<UnpackedArchive> {
    version.phase = "its archive is being downloaded";
    const { tree, durationUs } = await this.#disk.download(version, signal);
    this.#options.observer.downloaded(version.target, durationUs);
    return tree;
  }

  async #reserveMemory(version: Version, tree: UnpackedArchive, signal: AbortSignal): Promise<ModelCost> {
    using _lock = await this.#admission.acquire(signal);
    const { memoryBytesMax } = this.#options.limits;
    const share = this.#share;
    const ownBytes = this.#costs.estimateOwnBytes(tree.fingerprint, tree.ownBytes);
    const charge = limitCost({ key: version.id, ownBytes, contents: tree.contents }, memoryBytesMax);
    const aloneBytes = costBytes(charge);
    for (;;) {
      signal.throwIfAborted();
      const mostBytes = share.maximumBytes();
      if (aloneBytes > mostBytes) throw new ModelLoadError(507, notEnoughMemoryText(aloneBytes, mostBytes));
      const freed = share.whenFreed();
      const capacityBytes = this.#capacityBytes;
      const options = { incoming: charge, capacityBytes };
      const idle = this.#idleCharges().map(({ charge }) => charge);
      const victims = chooseEvictions(this.#memory, idle, options);
      if (victims === null) {
        // Before this load waits, it evicts models of containers that use more than their guarantee.
        if (capacityBytes < memoryBytesMax && (await rejectOnAbort(share.evictFromOtherCache(), signal))) continue;
        await rejectOnAbort(Promise.race([this.#changed.nextChange(), freed]), signal);
        continue;
      }
      if (victims.length === 0) {
        this.#memory.set(charge);
        this.#setMemory(version, "loading");
        return charge;
      }
      await Promise.all(victims.map(({ key }) => this.#unloadById(key)));
    }
  }

  async #loadReserved(
    version: Version,
    tree: UnpackedArchive,
    { container, charge, signal }: { container: ModelContainer; charge: ModelCost; signal: AbortSignal },
  ): Promise<void> {
    const { clock, observer } = this.#options;
    const newContents = charge.contents.filter(({ id }) => this.#memory.references(id) === 1);
    for (;;) {
      version.phase = "the container loads it";
      const startNs = clock.monotonicNs();
      const reply = await container.load(version, signal);
      if (reply.outcome === "refused") throw new ModelLoadError(reply.status, reply.message);
      if (reply.outcome === "loaded") {
        observer.loaded(version.target, (clock.monotonicNs() - startNs) / 1000);
        this.#setMemory(version, "loaded");
        if (reply.memoryBytes !== null) {
          const ownBytes = measuredOwnBytes(reply.memoryBytes, newContents);
          this.#costs.learn(tree.fingerprint, ownBytes);
          this.#memory.set({ ...charge, ownBytes });
          this.#notify(version);
          this.#tasks.run(() => this.#fitMemory());
        }
        return;
      }
      version.phase = "it waits for memory";
      await this.#freeMemory(version, reply.message, signal);
    }
  }

  /** Frees memory after a 507: unloads an idle model, or waits for a change. Throws ModelLoadError if no other model is loaded. */
  async #freeMemory(version: Version, message: string, signal: AbortSignal): Promise<void> {
    const victim = this.#idleLoaded().next().value;
    if (victim !== undefined) {
      await this.#unloads.unload(victim);
      return;
    }
    const others = [...this.#versions.values()].some((other) => other !== version && other.memory !== "absent");
    if (!others) throw new ModelLoadError(507, message);
    await rejectOnAbort(this.#changed.nextChange(), signal);
  }

  /** Unloads idle models until the remaining models fit the budget, which a load exceeds if its measured cost is above its reservation. */
  async #fitMemory(): Promise<void> {
    const options = { incoming: null, capacityBytes: this.#capacityBytes };
    const idle = [...this.#idleCharges()].map(({ charge }) => charge);
    const victims = chooseEvictions(this.#memory, idle, options) ?? idle;
    await Promise.all(victims.map(({ key }) => this.#unloadById(key)));
  }

  async #unloadById(id: string): Promise<void> {
    const version = this.#versions.get(id);
    if (version !== undefined) await this.#unloads.unload(version);
  }

  async #removeTree(version: Version): Promise<void> {
    await this.#disk.remove(version);
    this.#forgetIfUnused(version);
  }

  #setMemory(version: Version, memory: ModelMemoryState): void {
    version.memory = memory;
    if (memory === "absent") {
      this.#memory.remove(version.id);
      this.#share.notifyFreed();
    }
    this.#notify(version);
    this.#changed.notify();
  }

  #stateOf(version: Version): ModelState {
    const { id, target, memory, load, pinCount, usedNs } = version;
    const charge = this.#memory.get(id);
    return {
      id,
      target,
      isLoaded: memory === "loaded",
      isLoading: load !== null,
      isCurrent: this.#current.get(target) === version,
      ownBytes: charge?.ownBytes ?? 0,
      wholeBytes: charge === undefined ? 0 : costBytes(charge),
      pinCount,
      usedNs,
    };
  }

  #notify(version: Version): void {
    this.#options.observer.changed(this.#stateOf(version));
  }

  #unpin(version: Version): void {
    version.pinCount -= 1;
    version.usedNs = this.#options.clock.monotonicNs();
    this.#options.observer.used(version.id, version.pinCount, version.usedNs);
    if (version.pinCount > 0) return;
    this.#changed.notify();
    this.#share.notifyFreed();
    if (version.retired || !this.keepsModels) this.#removeVersion(version);
    else if (this.#memory.usedBytes > this.#capacityBytes) this.#tasks.run(() => this.#fitMemory());
    this.#forgetIfUnused(version);
  }

  /** Removes a version from memory and disk as soon as no request uses it. */
  #removeVersion(version: Version): void {
    version.retired = true;
    if (this.#current.get(version.target) === version) {
      this.#current.delete(version.target);
      this.#notify(version);
    }
    if (version.pinCount > 0 || version.load !== null) return;
    this.#tasks.run(async () => {
      await this.#unloads.unload(version);
      if (version.retired && version.pinCount === 0 && version.memory === "absent") await this.#removeTree(version);
    });
  }

  /** Deletes the entry of an unused version that is neither on disk nor in memory. Without this, the maps grow with each target. */
  #forgetIfUnused(version: Version): void {
    const used = version.pinCount > 0 || version.load !== null || version.memory !== "absent";
    if (used) return;
    if (version.tree !== null) {
      if (version.retired) this.#tasks.run(() => this.#removeTree(version));
      return;
    }
    if (this.#versions.get(version.id) === version) this.#versions.delete(version.id);
    if (this.#current.get(version.target) === version) this.#current.delete(version.target);
  }

  *#idleLoaded(): Generator<Version, undefined> {
    for (const version of this.#versions.values()) {
      if (version.memory === "loaded" && version.pinCount === 0) yield version;
    }
  }

  *#idleCharges(): Generator<{ readonly charge: ModelCost; readonly usedNs: number }> {
    for (const { id, usedNs } of this.#idleLoaded()) {
      const charge = this.#memory.get(id);
      if (charge !== undefined) yield { charge, usedNs };
    }
  }
}
