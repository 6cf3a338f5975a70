import { assert, delay, openDeadline, type Clock, type Logger, type TaskGroup } from "@galatea/base";
import type { AgentContainer, ModelsView, ModelState } from "../instance-agent/index.ts";
import { highestRanked, routeModelRequest, modelRoutingLimits, type RoutingCandidate } from "./model-routing.ts";
import type { PlacementKey } from "./model-rank.ts";
import { ModelRanks } from "./model-ranks.ts";
import { modelsToPreload } from "./model-warming.ts";

/** A multi-model container of an instance, with the view of its loaded models. */
export interface MultiModelContainer {
  readonly container: Pick<AgentContainer, "acquire" | "release" | "recheck">;
  readonly models: ModelsView;
}

/** An instance with at least one multi-model container. With Mode Direct, each of its containers can be one. */
export interface ModelInstance extends RoutingCandidate {
  readonly id: string;
  /** Returns the named multi-model container, or for null the only one of the instance; null if the named container has a single model. */
  holderOf(containerName: string | null): MultiModelContainer | null;
}

/** An instance that may have been adopted after a restart of the platform. */
export interface AdoptedInstance extends ModelInstance {
  serves(containerName: string | null): boolean;
  /** Returns whether the instance is being adopted, so that its loaded models are not known yet. */
  isAdopting(containerName: string | null): boolean;
  /** Resolves when the instance's loaded models are known. */
  adopted(containerName: string | null, signal: AbortSignal): Promise<void>;
}

export interface ModelRouterOptions {
  /** Task group for background loads. The fleet owns and closes it. */
  readonly tasks: TaskGroup;
  /** The endpoint's key for the placement of models. */
  readonly key: PlacementKey;
  /** Idle time after which an additional copy is unloaded, in milliseconds. */
  readonly coldMs: number;
  /** Time after the platform's start during which requests wait for the models of adopted instances, in milliseconds. */
  readonly adoptionMsMax: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface RequestedModel {
  readonly targetModel: string;
  readonly targetContainer: string | null;
}

/** Maximum number of concurrent loads of additional copies on one instance. Loads for waiting requests are not limited by it. */
const additionalLoadsMax = 2;
/** Maximum number of failed loads that are remembered, so that they are not retried immediately. */
const failuresMax = 1000;

/** Maximum time for loading models on new instances before requests are routed to them, in milliseconds. */
const warmMsMax = 60_000;

/** Routes requests for models to a fleet's instances, and loads and unloads additional copies of models. */
export class ModelRouter {
  readonly #options: ModelRouterOptions;
  readonly #ranks: ModelRanks;
  readonly #bringCounts = new Map<string, number>();
  /** Monotonic time until which a failed load is not retried, by instance and model. */
  readonly #failedUntilNs = new Map<string, number>();
  #adoptsUntilNs = -Infinity;

  constructor(options: ModelRouterOptions) {
    this.#options = options;
    this.#ranks = new ModelRanks(options.key);
  }

  /** Starts the period in which requests wait for the models of adopted instances. */
  adopts(): void {
    const { clock, adoptionMsMax } = this.#options;
    this.#adoptsUntilNs = clock.monotonicNs() + adoptionMsMax * 1e6;
  }

  /**
   * Resolves when an instance in service is known to have the model, when the models of all adopted instances are known,
   * or after a time limit. Without this wait, a request soon after a restart of the platform would load a model that
   * another instance has in memory.
   */
  async located(places: readonly AdoptedInstance[], requested: RequestedModel, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const { targetModel: target, targetContainer: name } = requested;
    const has = (place: AdoptedInstance) =>
      place.serves(name) && (place.holderOf(name)?.models.copyOf(target) ?? "absent") !== "absent";
    for (;;) {
      const afterMs = (this.#adoptsUntilNs - clock.monotonicNs()) / 1e6;
      const adopting = afterMs > 0 ? places.filter((place) => place.isAdopting(name)) : [];
      if (adopting.length === 0 || places.some(has)) return;
      using limit = openDeadline({ clock, afterMs, signal });
      await Promise.race(adopting.map((place) => place.adopted(name, limit.signal))).catch(() =>
        signal.throwIfAborted(),
      );
    }
  }

  /**
   * Returns the instance for a request, among those that can serve it. If the model needs additional copies, starts to
   * load them without waiting.
   */
  choose<Place extends ModelInstance>(places: readonly [Place, ...Place[]], requested: RequestedModel): Place {
    const { targetModel: target, targetContainer: name } = requested;
    let knownBytes: number | null = null;
    const bytesOf = () =>
      (knownBytes ??= places.reduce(
        (most, place) => Math.max(most, place.holderOf(name)?.models.memoryBytesOf(target) ?? 0),
        0,
      ));
    const model = {
      target,
      ranks: this.#ranks,
      copyOn: (place: Place) => place.holderOf(name)?.models.copyOf(target) ?? "absent",
      isBusyWith: (place: Place) => place.holderOf(name)?.models.isBusyWith(target) ?? true,
      requestsOn: (place: Place) => place.holderOf(name)?.models.demand.of(target) ?? 0,
      hasMemoryOn: (place: Place) => this.#mayCome(target, { to: place.holderOf(name), place, bytesOf }),
    };
    const { serve, bring } = routeModelRequest(places, model, modelRoutingLimits);
    for (const place of bring) {
      const holder = place.holderOf(name);
      if (holder !== null) this.#bring(place, holder, target);
    }
    return serve;
  }

  /**
   * Loads models that are in use on some instances onto the instances that will get their requests, so that no request
   * waits for a load. Resolves when the loads have ended, a time limit has expired, or the signal aborts. Models that fail
   * to load, or that would evict a model in use, are loaded by the first request for them.
   */
  async warm(
    from: readonly ModelInstance[],
    to: readonly ModelInstance[],
    { containers, signal }: { readonly containers: readonly string[]; readonly signal: AbortSignal },
  ): Promise<void> {
    const { clock, coldMs, key } = this.#options;
    using limit = openDeadline({ clock, afterMs: warmMsMax, signal });
    const sinceNs = clock.monotonicNs() - coldMs * 1e6;
    const warmings = containers.flatMap((name) => {
      const sources = from.flatMap((place) => {
        const holder = place.holderOf(name);
        return holder === null ? [] : [{ models: holder.models.loadedModels() }];
      });
      const places = to.flatMap((place) => {
        const holder = place.holderOf(name);
        if (holder === null || !holder.models.keepsModels) return [];
        const { id, ordinal } = place;
        return [{ id, ordinal, holder, has: (target: string) => holder.models.copyOf(target) !== "absent" }];
      });
      return modelsToPreload(sources, places, { sinceNs, key });
    });
    const left = warmings.values();
    const work = async () => {
      for (const { target, to: place, bytes } of left) {
        if (limit.signal.aborted) return;
        if (place.holder.models.hasMemoryFor(bytes, sinceNs)) await this.#acquire(place, target, limit.signal);
      }
    };
    await Promise.all(Array.from({ length: additionalLoadsMax * to.length }, work));
  }

  /** Periodically unloads unused additional copies. Runs until the signal aborts, and then rejects with its reason. */
  async dropCold(
    places: readonly ModelInstance[],
    containers: readonly string[],
    closing: AbortSignal,
  ): Promise<never> {
    const { clock, coldMs, key } = this.#options;
    for (;;) {
      await delay(clock, coldMs / 4, closing);
      const sinceNs = clock.monotonicNs() - coldMs * 1e6;
      for (const name of containers) {
        const held = places.flatMap((place) => {
          const holder = place.holderOf(name);
          return holder === null ? [] : [{ ordinal: place.ordinal, holder, models: holder.models.loadedModels() }];
        });
        for (const { holder, id } of unusedCopies(held, { sinceNs, key })) holder.container.release(id);
      }
    }
  }

  #mayCome(
    target: string,
    on: {
      readonly place: ModelInstance;
      readonly to: MultiModelContainer | null;
      /** Returns the memory of a loaded copy; 0 if there is none. */
      readonly bytesOf: () => number;
    },
  ): boolean {
    const { clock, coldMs } = this.#options;
    const { place, to, bytesOf } = on;
    if (to === null || !to.models.keepsModels || (this.#bringCounts.get(place.id) ?? 0) >= additionalLoadsMax)
      return false;
    const nowNs = clock.monotonicNs();
    if ((this.#failedUntilNs.get(keyOf(place, target)) ?? 0) > nowNs) return false;
    return to.models.hasMemoryFor(bytesOf(), nowNs - coldMs * 1e6);
  }

  /** Loads a copy for which no request waits. Resolves with whether it was loaded. */
  async #acquire(
    to: { readonly id: string; readonly holder: MultiModelContainer },
    target: string,
    signal: AbortSignal,
  ): Promise<boolean> {
    try {
      (await to.holder.container.acquire(target, signal))[Symbol.dispose]();
      return true;
    } catch (error) {
      if (signal.aborted) return false;
      this.#options.logger.info(
        "failed to load an additional copy of a model; requests continue on the existing copies",
        {
          instance: to.id,
          target,
          error: String(error),
        },
      );
      return false;
    }
  }

  #bring(place: ModelInstance, holder: MultiModelContainer, target: string): void {
    const { tasks, clock, coldMs } = this.#options;
    this.#bringCounts.set(place.id, (this.#bringCounts.get(place.id) ?? 0) + 1);
    tasks.run(async (closing) => {
      try {
        const hasCome = await this.#acquire({ id: place.id, holder }, target, closing);
        if (hasCome || closing.aborted) return;
        this.#failedUntilNs.delete(keyOf(place, target));
        this.#failedUntilNs.set(keyOf(place, target), clock.monotonicNs() + coldMs * 1e6);
        const [oldest] = this.#failedUntilNs.keys();
        if (this.#failedUntilNs.size > failuresMax && oldest !== undefined) this.#failedUntilNs.delete(oldest);
      } finally {
        const left = (this.#bringCounts.get(place.id) ?? 1) - 1;
        if (left > 0) this.#bringCounts.set(place.id, left);
        else this.#bringCounts.delete(place.id);
      }
    });
  }
}

const keyOf = ({ id }: ModelInstance, target: string) => `${id} ${target}`;

export interface InstanceModels<Holder> {
  readonly ordinal: number;
  readonly holder: Holder;
  readonly models: readonly Pick<ModelState, "id" | "target" | "pinCount" | "usedNs">[];
}

/**
 * Returns the copies to unload: for each model on several instances, the unused copies except the one on the
 * highest-ranked instance.
 */
export function unusedCopies<Holder>(
  held: readonly InstanceModels<Holder>[],
  { sinceNs, key }: { readonly sinceNs: number; readonly key: PlacementKey },
): readonly { readonly holder: Holder; readonly id: string }[] {
  const byTarget = new Map<
    string,
    { readonly from: InstanceModels<Holder>; readonly model: InstanceModels<Holder>["models"][number] }[]
  >();
  for (const from of held) {
    for (const model of from.models) {
      const copies = byTarget.get(model.target);
      if (copies === undefined) byTarget.set(model.target, [{ from, model }]);
      else copies.push({ from, model });
    }
  }
  return [...byTarget].flatMap(([target, copies]) => {
    const [first, ...more] = copies.map(({ from }) => from);
    assert(first !== undefined, "a model that is loaded is loaded somewhere");
    if (more.length === 0) return [];
    const stays = highestRanked([first, ...more], { key, target });
    return copies.flatMap(({ from, model: { id, pinCount, usedNs } }) =>
      from === stays || pinCount > 0 || usedNs > sinceNs ? [] : [{ holder: from.holder, id }],
    );
  });
}
