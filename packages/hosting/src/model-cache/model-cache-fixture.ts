import assert from "node:assert/strict";
import { silentLogger, systemClock, type Clock } from "@galatea/base";
import { NodeMemory } from "../nodes/index.ts";
import { modelCacheLimits, type ModelCacheLimits } from "./model-cache-limits.ts";
import { MemoryDisk, MemoryTrees } from "./memory-trees-fixture.ts";
import { ModelCache } from "./model-cache.ts";
import { ContainerEndedError, type ModelLoadReply } from "./model-container.ts";
import { ModelsView } from "./models-view.ts";

const never = new AbortController().signal;
export const nextTick = () => new Promise((resolve) => setImmediate(resolve));
export const mebi = 2 ** 20;

const unbounded = new NodeMemory({ bytesMax: Infinity, reservedBytes: () => 0 });

export interface StoredModel {
  etag: string;
  bytes: number;
  /** The container's reply instead of loading. */
  refusal?: ModelLoadReply;
  /** The number of loads of this model during which the container ends. */
  deaths?: number;
}

/** A model cache with an in-memory container and object store, whose calls are asynchronous. */
export class ModelCacheFixture {
  readonly objects = new Map<string, StoredModel>();
  readonly loaded = new Map<string, { target: string; bytes: number }>();
  readonly busy = new Map<string, number>();
  readonly events: string[] = [];
  readonly cache: ModelCache;
  readonly trees: MemoryTrees;
  memoryBytes = 0;
  containerBytesMax = Infinity;
  hold: Promise<void> = Promise.resolve();
  readonly view: ModelsView;
  readonly outdated: string[] = [];
  /** The number of following unloads that fail and leave the model in the container. */
  unloadFailures = 0;

  constructor(
    limits: Partial<ModelCacheLimits>,
    disk = new MemoryDisk(),
    {
      nodeMemory = unbounded,
      guaranteedBytes = 0,
      clock = systemClock,
    }: { readonly nodeMemory?: NodeMemory; readonly guaranteedBytes?: number; readonly clock?: Clock } = {},
  ) {
    this.trees = new MemoryTrees(disk, {
      find: (target) => this.objects.get(target),
      unpacked: (target) => this.events.push(`unpack ${target}`),
    });
    const view = new ModelsView({ keepsModels: limits.keepsModels ?? true });
    this.view = view;
    this.cache = new ModelCache({
      limits: { ...modelCacheLimits, diskBytesMax: 1000 * mebi, memoryBytesMax: 1000 * mebi, ...limits },
      trees: this.trees,
      joinMemory: (cache) => nodeMemory.addCache(cache, guaranteedBytes),
      container: async () => ({
        load: async ({ id, target }) => await this.#load(id, target),
        unload: async ({ id }) => {
          assert.equal(this.busy.get(id) ?? 0, 0, "a busy model is never unloaded");
          assert(this.loaded.has(id), "only loaded models are unloaded");
          this.events.push(`unload ${this.loaded.get(id)?.target}`);
          await nextTick();
          if (this.unloadFailures > 0) {
            this.unloadFailures--;
            throw new Error("the unload did not end in time");
          }
          this.memoryBytes -= this.loaded.get(id)?.bytes ?? 0;
          this.loaded.delete(id);
        },
      }),
      observer: {
        downloaded: () => {},
        loaded: () => {},
        unloaded: () => {},
        outdated: (target) => this.outdated.push(target),
        changed: (model) => view.changed(model),
        used: (id, pinCount, usedNs) => view.used(id, pinCount, usedNs),
      },
      clock,
      logger: silentLogger,
    });
  }

  async #load(id: string, target: string): Promise<ModelLoadReply> {
    const object = this.objects.get(target);
    assert(object !== undefined && !this.loaded.has(id), "one load for many waiters");
    assert(this.trees.disk.kept.has(id), "a model is loaded from its files");
    this.events.push(`load ${target}`);
    this.loaded.set(id, { target, bytes: object.bytes });
    await nextTick();
    await this.hold;
    if ((object.deaths ?? 0) > 0) {
      object.deaths = (object.deaths ?? 0) - 1;
      this.loaded.delete(id);
      this.cache.containerLost();
      throw new ContainerEndedError(new Error("other side closed"));
    }
    const fits = this.memoryBytes + object.bytes <= this.containerBytesMax;
    if (object.refusal !== undefined || !fits) {
      this.loaded.delete(id);
      return object.refusal ?? { outcome: "out-of-memory", message: "Out of memory" };
    }
    this.memoryBytes += object.bytes;
    return { outcome: "loaded", memoryBytes: object.bytes };
  }

  put(target: string, bytes = mebi, etag = "1"): void {
    this.objects.set(target, { bytes, etag });
  }

  async invoke(target: string, signal = never, tickCount = 1): Promise<boolean> {
    const lease = await this.cache.acquire(target, signal);
    assert(this.loaded.has(lease.id), "a lease is of a loaded model");
    this.busy.set(lease.id, (this.busy.get(lease.id) ?? 0) + 1);
    for (let index = 0; index < tickCount; index += 1) await nextTick();
    assert(this.loaded.has(lease.id), "a leased model stays loaded");
    this.busy.set(lease.id, (this.busy.get(lease.id) ?? 1) - 1);
    lease[Symbol.dispose]();
    return lease.cacheHit;
  }

  targets(): string[] {
    return this.view.loadedModels().map(({ target }) => target);
  }
}
