import { assert, delay, openDeadline, type Clock, type Logger, type TaskGroup } from "@galatea/base";
import type { AgentContainer, ModelsView, ModelState } from "../instance-agent/index.ts";
import { firstInRank, placeModel, placementLimits, type PlacementCandidate } from "./model-placement.ts";
import type { PlacementKey } from "./model-rank.ts";
import { warmingsOf } from "./model-warming.ts";

/** A multi-model container. */
export interface ModelHolder {
  readonly container: Pick<AgentContainer, "acquire" | "release" | "recheck">;
  readonly models: ModelsView;
}

/** An instance with multi-model containers; in Direct mode each of its containers may have models of its own. */
export interface ModelInstance extends PlacementCandidate {
  readonly id: string;
  /** Returns the named container, or for null the only multi-model one; null for a container with a single model. */
  holderOf(containerName: string | null): ModelHolder | null;
}

/** An instance that may be of a previous run of the platform. */
export interface AdoptedInstance extends ModelInstance {
  serves(containerName: string | null): boolean;
  /** Returns whether its models are not known yet. */
  isAdopting(containerName: string | null): boolean;
  /** Resolves when they are known. */
  adopted(containerName: string | null, signal: AbortSignal): Promise<void>;
}

export interface ModelRouterOptions {
  /** The tasks of the fleet, which closes them. */
  readonly tasks: TaskGroup;
  /** The endpoint's key for the placement of models. */
  readonly key: PlacementKey;
  /** Idle time after which a copy is unloaded. */
  readonly coldMs: number;
  /** Maximum wait of requests for the models of adopted instances, from the platform's start. */
  readonly adoptionMsMax: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface RequestedModel {
  readonly targetModel: string;
  readonly targetContainer: string | null;
}

/** Maximum number of concurrent additional loads on one instance: requests that wait for models load there, too. */
const bringsMax = 2;
/** Maximum number of remembered failed copies, which are not retried at once; above this the oldest are forgotten. */
const failuresMax = 1000;

/** Maximum duration of loading models on an instance before requests go there. */
const warmMsMax = 60_000;

/** Routes the requests for models to a fleet's instances, and loads and unloads copies of the models. */
export class ModelRouter {
  readonly #options: ModelRouterOptions;
  readonly #bringCounts = new Map<string, number>();
  /** Time from which a copy may be tried again, by instance and model. */
  readonly #failedUntilNs = new Map<string, number>();
  #adoptsUntilNs = -Infinity;

  constructor(options: ModelRouterOptions) {
    this.#options = options;
  }

  /** Starts the time in which requests wait for the models of adopted instances. */
  adopts(): void {
    const { clock, adoptionMsMax } = this.#options;
    this.#adoptsUntilNs = clock.monotonicNs() + adoptionMsMax * 1e6;
  }

  /**
   * Resolves when an instance in service has the model, when the models of all adopted instances are known, or after a
   * time limit. Without this wait, a request soon after the platform's start would load a model that another instance
   * has in memory.
   */
  async located(places: readonly AdoptedInstance[], asked: RequestedModel, signal: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    const { targetModel: target, targetContainer: name } = asked;
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
   * Returns the instance for a request, among those that can serve it. Starts loading a further copy where the model is
   * to have one, without waiting for it.
   */
  choose<Place extends ModelInstance>(places: readonly [Place, ...Place[]], asked: RequestedModel): Place {
    const { targetModel: target, targetContainer: name } = asked;
    const model = {
      target,
      key: this.#options.key,
      copyOn: (place: Place) => place.holderOf(name)?.models.copyOf(target) ?? "absent",
      isBusyWith: (place: Place) => place.holderOf(name)?.models.isBusyWith(target) ?? true,
      hasRoomOn: (place: Place) => this.#mayCome(target, { to: place.holderOf(name), place, places, name }),
    };
    const { serve, bring } = placeModel(places, model, placementLimits);
    const holder = bring?.holderOf(name) ?? null;
    if (bring !== null && holder !== null) this.#bring(bring, holder, target);
    return serve;
  }

  /**
   * Loads the models that some instances have in use on the instances that will get their requests, so that no request
   * waits for a load. Resolves when that is done, has taken too long, or the signal aborts; models that fail to load,
   * or would evict a model in use, are left to requests.
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
      return warmingsOf(sources, places, { sinceNs, key });
    });
    const left = warmings.values();
    const work = async () => {
      for (const { target, to: place, bytes } of left) {
        if (limit.signal.aborted) return;
        if (place.holder.models.hasRoomFor(bytes, sinceNs)) await this.#acquire(place, target, limit.signal);
      }
    };
    await Promise.all(Array.from({ length: bringsMax * to.length }, work));
  }

  /** Periodically unloads unused copies of models with several copies, until it rejects with the signal's reason. */
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
        for (const { holder, id } of coldCopies(held, { sinceNs, key })) holder.container.release(id);
      }
    }
  }

  #mayCome(
    target: string,
    on: {
      readonly place: ModelInstance;
      readonly to: ModelHolder | null;
      readonly places: readonly ModelInstance[];
      readonly name: string | null;
    },
  ): boolean {
    const { clock, coldMs } = this.#options;
    const { place, to, places, name } = on;
    if (to === null || !to.models.keepsModels || (this.#bringCounts.get(place.id) ?? 0) >= bringsMax) return false;
    const nowNs = clock.monotonicNs();
    if ((this.#failedUntilNs.get(keyOf(place, target)) ?? 0) > nowNs) return false;
    let bytes = 0;
    for (const each of places) bytes = Math.max(bytes, each.holderOf(name)?.models.memoryBytesOf(target) ?? 0);
    return to.models.hasRoomFor(bytes, nowNs - coldMs * 1e6);
  }

  /** Returns whether a copy that no request waits for was loaded. */
  async #acquire(
    to: { readonly id: string; readonly holder: ModelHolder },
    target: string,
    signal: AbortSignal,
  ): Promise<boolean> {
    try {
      (await to.holder.container.acquire(target, signal))[Symbol.dispose]();
      return true;
    } catch (error) {
      if (signal.aborted) return false;
      this.#options.logger.info("an additional copy of a model could not be loaded", {
        instance: to.id,
        target,
        error: String(error),
      });
      return false;
    }
  }

  #bring(place: ModelInstance, holder: ModelHolder, target: string): void {
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

export interface LoadedModels<Holder> {
  readonly ordinal: number;
  readonly holder: Holder;
  readonly models: readonly Pick<ModelState, "id" | "target" | "pinCount" | "usedNs">[];
}

/**
 * Returns the copies to unload: for a model on several instances, all but the first in rank that no request uses or has
 * used recently.
 */
export function coldCopies<Holder>(
  held: readonly LoadedModels<Holder>[],
  { sinceNs, key }: { readonly sinceNs: number; readonly key: PlacementKey },
): readonly { readonly holder: Holder; readonly id: string }[] {
  const byTarget = new Map<
    string,
    { readonly from: LoadedModels<Holder>; readonly model: LoadedModels<Holder>["models"][number] }[]
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
    const stays = firstInRank([first, ...more], { key, target });
    return copies.flatMap(({ from, model: { id, pinCount, usedNs } }) =>
      from === stays || pinCount > 0 || usedNs > sinceNs ? [] : [{ holder: from.holder, id }],
    );
  });
}
