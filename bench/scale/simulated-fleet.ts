import {
  highestRanked,
  modelRoutingLimits,
  routeModelRequest,
} from "../../packages/hosting/src/endpoints/model-routing.ts";
import type { PlacementKey } from "../../packages/hosting/src/endpoints/model-rank.ts";
import { ModelRanks } from "../../packages/hosting/src/endpoints/model-ranks.ts";
import { ModelDemand } from "../../packages/hosting/src/model-cache/model-demand.ts";
import { Timeline } from "./timeline.ts";

/** Loads of additional copies at the same time on one pod, as the product limits them. */
const additionalLoadsMax = 2;

export interface SimulationOptions {
  readonly podCount: number;
  /** Number of models that fit on a pod. */
  readonly modelsMax: number;
  /** Time of a pod for one request; it serves one after the other. */
  readonly serviceMs: number;
  readonly loadMs: number;
  /** Time without a request after which an additional copy of another model may replace a model. */
  readonly coldMs: number;
  readonly key: PlacementKey;
}

interface Copy {
  isLoaded: boolean;
  usedMs: number;
  /** Requests that wait for the load. */
  readonly waiting: (() => void)[];
}

interface Pod {
  readonly ordinal: number;
  inFlightCount: number;
  readonly demand: ModelDemand;
  /** Models on the pod, the least recently used first. */
  readonly copies: Map<string, Copy>;
  additionalLoadCount: number;
  freeAtMs: number;
  servedCount: number;
}

export interface SimulatedResponse {
  readonly tookMs: number;
  /** Whether the request waited for a load. */
  readonly isMiss: boolean;
}

/** Pods of one multi-model endpoint in simulated time. The product's own code places the models and routes the requests. */
export class SimulatedFleet {
  readonly #options: SimulationOptions;
  readonly #pods: readonly [Pod, ...Pod[]];
  readonly #ranks: ModelRanks;
  readonly timeline = new Timeline();
  /** Number of copies that were loaded without a waiting request. */
  additionalCopyCount = 0;

  constructor(options: SimulationOptions) {
    this.#options = options;
    this.#ranks = new ModelRanks(options.key);
    const [first, ...more] = Array.from({ length: options.podCount }, (_, ordinal) => newPod(ordinal));
    if (first === undefined) throw new RangeError("a fleet has at least one pod");
    this.#pods = [first, ...more];
  }

  /** Loads each model on the pod that ranks highest for it, within the pod's capacity: the state long after the start. */
  settle(targets: Iterable<string>): void {
    const { key, modelsMax } = this.#options;
    for (const target of targets) {
      const { copies } = highestRanked(this.#pods, { key, target });
      if (copies.size < modelsMax) copies.set(target, { isLoaded: true, usedMs: -Infinity, waiting: [] });
    }
  }

  modelsPerPod(): readonly number[] {
    return this.#pods.map(({ copies }) => copies.size);
  }

  podsWith(target: string): number {
    return this.#pods.filter(({ copies }) => copies.get(target)?.isLoaded === true).length;
  }

  servedPerPod(): readonly number[] {
    return this.#pods.map(({ servedCount }) => servedCount);
  }

  /** Routes a request now. `done` is called at its simulated end. */
  request(target: string, done: (response: SimulatedResponse) => void): void {
    const { serve, bring } = routeModelRequest(
      this.#pods,
      {
        target,
        ranks: this.#ranks,
        copyOn: ({ copies, demand }: Pod) => {
          const copy = copies.get(target);
          if (copy?.isLoaded === true) return "loaded";
          return copy !== undefined || demand.of(target) > 0 ? "coming" : "absent";
        },
        isBusyWith: ({ demand }: Pod) => demand.isMostlyFor(target),
        requestsOn: ({ demand }: Pod) => demand.of(target),
        hasMemoryOn: (pod: Pod) => pod.additionalLoadCount < additionalLoadsMax && this.#hasRoom(pod),
      },
      modelRoutingLimits,
    );
    for (const pod of bring) this.#bring(pod, target);
    this.#serve(serve, target, done);
  }

  #serve(pod: Pod, target: string, done: (response: SimulatedResponse) => void): void {
    const startMs = this.timeline.nowMs;
    const demand = pod.demand.begin(target);
    pod.inFlightCount += 1;
    const copy = pod.copies.get(target) ?? this.#load(pod, target);
    const isMiss = !copy.isLoaded;
    copy.usedMs = startMs;
    pod.copies.delete(target);
    pod.copies.set(target, copy);
    const run = () => {
      pod.freeAtMs = Math.max(pod.freeAtMs, this.timeline.nowMs) + this.#options.serviceMs;
      this.timeline.at(pod.freeAtMs, () => {
        demand[Symbol.dispose]();
        pod.inFlightCount -= 1;
        pod.servedCount += 1;
        done({ tookMs: this.timeline.nowMs - startMs, isMiss });
      });
    };
    if (isMiss) copy.waiting.push(run);
    else run();
  }

  #hasRoom({ copies, demand }: Pod): boolean {
    const { modelsMax, coldMs } = this.#options;
    if (copies.size < modelsMax) return true;
    for (const [target, { isLoaded, usedMs }] of copies)
      if (isLoaded && demand.of(target) === 0) return usedMs <= this.timeline.nowMs - coldMs;
    return false;
  }

  #bring(pod: Pod, target: string): void {
    pod.additionalLoadCount += 1;
    this.additionalCopyCount += 1;
    this.#load(pod, target).waiting.push(() => (pod.additionalLoadCount -= 1));
  }

  /** Starts a load, for which the least recently used models without requests are unloaded. */
  #load(pod: Pod, target: string): Copy {
    const { modelsMax, loadMs } = this.#options;
    for (const [other, { isLoaded }] of pod.copies) {
      if (pod.copies.size < modelsMax) break;
      if (isLoaded && pod.demand.of(other) === 0) pod.copies.delete(other);
    }
    const copy: Copy = { isLoaded: false, usedMs: this.timeline.nowMs, waiting: [] };
    pod.copies.set(target, copy);
    this.timeline.at(this.timeline.nowMs + loadMs, () => {
      copy.isLoaded = true;
      for (const run of copy.waiting.splice(0)) run();
    });
    return copy;
  }
}

function newPod(ordinal: number): Pod {
  return {
    ordinal,
    inFlightCount: 0,
    demand: new ModelDemand(),
    copies: new Map(),
    additionalLoadCount: 0,
    freeAtMs: 0,
    servedCount: 0,
  };
}

/**
 * Returns the share of the models that are relocated after `addedCount` pods are added to `podCount` pods. The same
 * share is relocated when they are removed.
 */
export function movedShare(
  targets: readonly string[],
  { podCount, addedCount, key }: { readonly podCount: number; readonly addedCount: number; readonly key: PlacementKey },
): number {
  const after = Array.from({ length: podCount + addedCount }, (_, ordinal) => ({ ordinal }));
  const before = after.slice(0, podCount);
  const moved = targets.filter((target) => homeOf(target, after, key) !== homeOf(target, before, key));
  return moved.length / targets.length;
}

function homeOf(target: string, pods: readonly { readonly ordinal: number }[], key: PlacementKey): number {
  const [first, ...more] = pods;
  if (first === undefined) throw new RangeError("a fleet has at least one pod");
  return highestRanked([first, ...more], { key, target }).ordinal;
}
