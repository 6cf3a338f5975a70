import type { UnpackedArchive } from "../objects/index.ts";
import { Gate, openDeadline, orAborted, Semaphore, TaskGroup } from "@galatea/base";
import type { ModelCacheLease, ModelCacheOptions } from "./model-cache-options.ts";
import { adoptModels, measuredOwnBytes } from "./adopted-models.ts";
import { ChargedSet, chargedBytes, CostBook, chooseVictims, clipCharge, type Charge } from "./charges.ts";
import { DiskCache } from "./disk-cache.ts";
import { createModelVersion, type ModelMemory, type ModelVersion as Version } from "./model-version.ts";
import { missingText, type MemoryShare } from "../nodes/index.ts";
import {
  ContainerLostError,
  ModelLoadError,
  ModelMissingError,
  ModelNotReadyError,
  ModelReplacedError,
  type ContainedModel,
  type ModelContainer,
} from "./model-container.ts";
import { ModelUnloads } from "./model-unloads.ts";
import type { ModelsMemory, ModelState } from "./models-view.ts";

const learnedEntriesMax = 20_000;
/** Loads of one model that may meet the end of the container. */
const loadAttemptsMax = 2;
const costFloorBytes = 1024 * 1024;

/**
 * Keeps the models of one instance: which archives are unpacked on its disk (least recently used go first when bytes run out)
 * and which are loaded in its container (the same, within a memory budget, and when the container answers 507). A model
 * with requests in flight is never unloaded. All requests for one cold model wait for one load; the load goes on when they
 * leave. A version is an object's ETag: a replaced object is a new model beside the old one, which goes when it is idle.
 */
export class ModelCache implements AsyncDisposable {
  readonly #options: ModelCacheOptions;
  /** By id, least recently used first. */
  readonly #versions = new Map<string, Version>();
  readonly #current = new Map<string, Version>();
  readonly #memory = new ChargedSet();
  readonly #disk: DiskCache;
  readonly #costs = new CostBook({ entriesMax: learnedEntriesMax, floorBytes: costFloorBytes });
  readonly #tasks: TaskGroup;
  readonly #loads: Semaphore;
  readonly #unloads: ModelUnloads;
  readonly #admission = new Semaphore(1);
  readonly #changed = new Gate();
  readonly #share: MemoryShare;
  #waiterCount = 0;

  constructor(options: ModelCacheOptions) {
    this.#options = options;
    this.#share = options.joinMemory(this);
    this.#tasks = new TaskGroup((error) => {
      options.logger.error("a task of the model cache failed", { error: String(error) });
    });
    this.#loads = new Semaphore(options.limits.loadsMax);
    this.#unloads = new ModelUnloads({
      cache: options,
      tasks: this.#tasks,
      moved: (version, memory) => this.#setMemory(version, memory),
      over: (version) => this.#forgetIfUnused(version),
    });
    const { trees, clock, logger } = options;
    const { diskBytesMax } = options.limits;
    const places = { trees, diskBytesMax, clock, logger, tasks: this.#tasks };
    this.#disk = new DiskCache({ ...places, versions: this.#versions, unloadOne: () => this.makeRoom() });
  }

  /** Otherwise each goes after the request that it was loaded for. */
  get keepsModels(): boolean {
    return this.#options.limits.keepsModels;
  }

  get memoryUsedBytes(): number {
    return this.#memory.usedBytes;
  }

  get diskUsedBytes(): number {
    return this.#disk.usedBytes;
  }

  /** What its models hold, and may hold now. */
  get memory(): ModelsMemory {
    return { usedBytes: this.#memory.usedBytes, capacityBytes: this.#capacityBytes };
  }

  /** Models that are loaded or on their way, least recently used first. */
  states(): readonly ModelState[] {
    return [...this.#versions.values()]
      .filter(({ memory, load }) => memory === "loaded" || load !== null)
      .map((version) => this.#stateOf(version));
  }

  /** Unloads a model that no request holds; its files stay on the disk. */
  release(id: string): void {
    const version = this.#versions.get(id);
    if (version !== undefined && version.pinCount === 0) this.#tasks.run(() => this.#unloads.unload(version));
  }

  /** Somebody else has seen another object for it: what is old here goes. */
  recheck(target: string): void {
    if (!this.#current.has(target)) return;
    this.#tasks.run(async (signal) => {
      const found = await this.#options.source.find(target, signal);
      const version = this.#current.get(target);
      if (version !== undefined && version.etag !== found?.etag) this.#retire(version);
    });
  }

  /** Takes over what an earlier life of the platform unpacked here, and of it what its container has loaded; what else that has is unloaded. */
  async adopt(loaded: readonly ContainedModel[]): Promise<void> {
    const { memoryBytesMax } = this.#options.limits;
    const on = { disk: this.#disk, memory: this.#memory, costs: this.#costs, memoryBytesMax };
    const { versions, unknownIds } = await adoptModels(loaded, on);
    for (const { version, isLoaded } of versions) {
      const before = this.#current.get(version.target);
      this.#versions.set(version.id, version);
      this.#current.set(version.target, version);
      if (isLoaded) this.#setMemory(version, "loaded");
      if (before !== undefined) this.#retire(before);
      if (!this.keepsModels) this.#retire(version);
    }
    for (const id of unknownIds) this.#unloads.unloadUnknown(id);
    this.#tasks.run(() => this.#fitMemory());
  }

  /** Throws ModelMissingError, ModelLoadError, ModelNotReadyError, or the signal's reason. */
  async acquire(target: string, signal: AbortSignal): Promise<ModelCacheLease> {
    const askedNs = this.#options.clock.monotonicNs();
    for (;;) {
      try {
        return await this.#acquireVersion(target, askedNs, signal);
      } catch (error) {
        // Replaced meanwhile: who waited for the old bytes is given the new ones, within the same limit.
        if (!(error instanceof ModelReplacedError)) throw error;
      }
    }
  }

  async #acquireVersion(target: string, askedNs: number, signal: AbortSignal): Promise<ModelCacheLease> {
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
          await this.#waitForLoad(version, askedNs, signal);
        } finally {
          this.#waiterCount -= 1;
        }
      }
      leased = true;
      let released = false;
      return {
        id: version.id,
        cacheHit,
        waitedUs: (clock.monotonicNs() - askedNs) / 1000,
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

  /** The container says that it does not hold this model (404): the next acquire loads it. */
  forget(id: string): void {
    const version = this.#versions.get(id);
    if (version?.memory === "loaded") this.#setMemory(version, "absent");
  }

  /** The container died: it holds nothing any more. Leases end with the requests that held them. */
  containerLost(): void {
    for (const version of this.#versions.values()) {
      if (version.memory === "loaded") this.#setMemory(version, "absent");
    }
  }

  /** For a 507 during an invocation: unloads the least recently used idle model; false when there is none. */
  async makeRoom(): Promise<boolean> {
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
    return Math.min(this.#options.limits.memoryBytesMax, this.#share.capacityBytes());
  }

  async #versionNow(target: string, signal: AbortSignal): Promise<Version> {
    const { clock, limits, source } = this.#options;
    const known = this.#current.get(target);
    const fresh =
      known !== undefined && limits.headAgeMsMax > 0 && clock.epochMs() - known.checkedAtMs < limits.headAgeMsMax;
    if (fresh) return known;
    const found = await source.find(target, signal);
    const current = this.#current.get(target);
    if (found === null) {
      if (current !== undefined) this.#outdate(current);
      throw new ModelMissingError(target);
    }
    if (current !== undefined && current.etag === found.etag) {
      current.checkedAtMs = clock.epochMs();
      return current;
    }
    if (current !== undefined) this.#outdate(current);
    return this.#openVersion(target, found);
  }

  #outdate(version: Version): void {
    this.#retire(version);
    this.#options.observer.outdated(version.target);
  }

  #openVersion(target: string, found: { readonly etag: string; readonly byteLength: number }): Version {
    const opened = createModelVersion(target, found, this.#options.clock.epochMs());
    // The same bytes came back while the version they had before was still on its way out.
    const version = this.#versions.get(opened.id) ?? opened;
    version.retired = false;
    this.#versions.set(version.id, version);
    this.#current.set(target, version);
    this.#tell(version);
    return version;
  }

  #touch(version: Version): void {
    version.usedNs = this.#options.clock.monotonicNs();
    this.#versions.delete(version.id);
    this.#versions.set(version.id, version);
  }

  async #waitForLoad(version: Version, askedNs: number, signal: AbortSignal): Promise<void> {
    const { clock, limits } = this.#options;
    const afterMs = Math.max(0, limits.waitMsMax - (clock.monotonicNs() - askedNs) / 1e6);
    using deadline = openDeadline({ clock, afterMs, signal, late: () => new ModelNotReadyError(version.phase) });
    // More than one round only when the container died between the end of the load and this request's turn.
    while (version.memory !== "loaded") {
      if (version.load === null) {
        version.load = this.#startLoad(version);
        this.#tell(version);
      }
      await orAborted(version.load, deadline.signal);
    }
  }

  #startLoad(version: Version): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    // Each waiter handles the failure; without one it is nobody's.
    promise.catch(() => {});
    this.#tasks.run(async (signal) => {
      const { clock, limits, logger } = this.#options;
      const late = () => new ModelLoadError(503, `the load did not end within ${limits.loadMsMax / 1000} s`);
      using deadline = openDeadline({ clock, afterMs: limits.loadMsMax, signal, late });
      try {
        await this.#load(version, deadline.signal);
        version.load = null;
        resolve();
      } catch (error) {
        version.load = null;
        if (error instanceof ModelReplacedError) this.#retire(version);
        else if (!signal.aborted)
          logger.warning("a model did not load", { target: version.target, error: String(error) });
        reject(signal.aborted ? new ModelLoadError(503, "the instance is stopped", { cause: error }) : error);
      } finally {
        this.#tell(version);
        this.#changed.open();
        this.#forgetIfUnused(version);
      }
    });
    return promise;
  }

  async #load(version: Version, signal: AbortSignal): Promise<void> {
    version.phase = "it waits for its turn to load";
    using _slot = await this.#loads.acquire(signal);
    // The version before it in memory is still being unloaded: its end decides what there is to load.
    if (version.unload !== null) await orAborted(version.unload, signal);
    const tree = (await this.#disk.wholeTree(version, signal)) ?? (await this.#download(version, signal));
    for (let attempt = 1; ; attempt += 1) {
      try {
        await this.#loadOnce(version, tree, signal);
        return;
      } catch (error) {
        if (!(error instanceof ContainerLostError)) throw error;
        // Whatever ended it, this model's load is innocent until the container ends in it again.
        const message = `the container ended while it loaded the model: ${String(error.cause)}`;
        if (attempt >= loadAttemptsMax) throw new ModelLoadError(503, message, { cause: error });
        this.#options.logger.warning("a model's load is tried again", { target: version.target, reason: message });
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

  async #reserveMemory(version: Version, tree: UnpackedArchive, signal: AbortSignal): Promise<Charge> {
    using _turn = await this.#admission.acquire(signal);
    const { memoryBytesMax } = this.#options.limits;
    const share = this.#share;
    const ownBytes = this.#costs.estimateOwnBytes(tree.fingerprint, tree.ownBytes);
    const charge = clipCharge({ key: version.id, ownBytes, contents: tree.contents }, memoryBytesMax);
    const aloneBytes = chargedBytes(charge);
    for (;;) {
      signal.throwIfAborted();
      const missingBytes = aloneBytes - share.mostBytes();
      if (missingBytes > 0) throw new ModelLoadError(507, missingText(aloneBytes, missingBytes));
      const freed = share.whenFreed();
      const capacityBytes = this.#capacityBytes;
      const options = { incoming: charge, capacityBytes };
      const idle = this.#idleCharges().map(({ charge }) => charge);
      const victims = chooseVictims(this.#memory, idle, options);
      if (victims === null) {
        // What others on the node have beyond their promise goes before anybody is kept waiting.
        if (capacityBytes < memoryBytesMax && (await orAborted(share.makeRoom(), signal))) continue;
        await orAborted(Promise.race([this.#changed.opened(), freed]), signal);
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
    { container, charge, signal }: { container: ModelContainer; charge: Charge; signal: AbortSignal },
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
          this.#tell(version);
          this.#tasks.run(() => this.#fitMemory());
        }
        return;
      }
      version.phase = "it waits for memory";
      await this.#freeMemory(version, reply.message, signal);
    }
  }

  /** After a 507: one idle model goes, or one in use is waited for; with nothing else in memory the answer is final. */
  async #freeMemory(version: Version, message: string, signal: AbortSignal): Promise<void> {
    const victim = this.#idleLoaded().next().value;
    if (victim !== undefined) {
      await this.#unloads.unload(victim);
      return;
    }
    const others = [...this.#versions.values()].some((other) => other !== version && other.memory !== "absent");
    if (!others) throw new ModelLoadError(507, message);
    await orAborted(this.#changed.opened(), signal);
  }

  /** A measured cost above its reservation may leave the set above the budget: idle models go until it fits. */
  async #fitMemory(): Promise<void> {
    const options = { incoming: null, capacityBytes: this.#capacityBytes };
    const idle = [...this.#idleCharges()].map(({ charge }) => charge);
    const victims = chooseVictims(this.#memory, idle, options) ?? idle;
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

  #setMemory(version: Version, memory: ModelMemory): void {
    version.memory = memory;
    if (memory === "absent") {
      this.#memory.remove(version.id);
      this.#share.freed();
    }
    this.#tell(version);
    this.#changed.open();
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
      wholeBytes: charge === undefined ? 0 : chargedBytes(charge),
      pinCount,
      usedNs,
    };
  }

  #tell(version: Version): void {
    this.#options.observer.changed(this.#stateOf(version));
  }

  #unpin(version: Version): void {
    version.pinCount -= 1;
    version.usedNs = this.#options.clock.monotonicNs();
    this.#options.observer.used(version.id, version.pinCount, version.usedNs);
    if (version.pinCount > 0) return;
    this.#changed.open();
    this.#share.freed();
    if (version.retired || !this.keepsModels) this.#retire(version);
    else if (this.#memory.usedBytes > this.#capacityBytes) this.#tasks.run(() => this.#fitMemory());
    this.#forgetIfUnused(version);
  }

  /** Replaced or deleted: leaves memory and disk as soon as nobody uses it. */
  #retire(version: Version): void {
    version.retired = true;
    if (this.#current.get(version.target) === version) {
      this.#current.delete(version.target);
      this.#tell(version);
    }
    if (version.pinCount > 0 || version.load !== null) return;
    this.#tasks.run(async () => {
      await this.#unloads.unload(version);
      if (version.retired && version.pinCount === 0 && version.memory === "absent") await this.#removeTree(version);
    });
  }

  /** The table holds what is on disk, in memory, used or on its way: nothing else, so it is bounded by those. */
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

  *#idleCharges(): Generator<{ readonly charge: Charge; readonly usedNs: number }> {
    for (const { id, usedNs } of this.#idleLoaded()) {
      const charge = this.#memory.get(id);
      if (charge !== undefined) yield { charge, usedNs };
    }
  }
}
