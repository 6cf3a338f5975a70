import { CallWatch, captureSettings, ShadowCalls, type Mirrors, type MirrorShare } from "../mirrors/index.ts";
import type { InvocationRequest } from "../invocations/index.ts";
import { isProduction, type EndpointRecord, type Generation } from "./endpoint-record.ts";
import type { VariantFleet } from "./variant-fleet.ts";

/** Requests of a shadow variant under way at a time. */
const shadowCallsMax = 512;
/** Of what a shadow variant answers, read in a second: a hundredth or so of the time that this process has for all. */
const shadowAnswerBytesPerSecond = 64 * 2 ** 20;

type FleetOf = (generation: Generation, variantName: string) => VariantFleet;

/** Which calls of an endpoint are copied, for data capture or for a shadow variant: those of which fleets, and how. */
export class EndpointMirrors {
  readonly #mirrors: Mirrors;
  readonly #share: MirrorShare;
  readonly #shadows = new Map<VariantFleet, ShadowCalls>();
  #isCapturing = false;

  constructor(endpointName: string, mirrors: Mirrors) {
    this.#mirrors = mirrors;
    this.#share = mirrors.account.share(endpointName);
  }

  /** What watches the calls of each fleet; undefined where nobody watches any. */
  watchesOf({ generations }: EndpointRecord, fleetOf: FleetOf): ReadonlyMap<VariantFleet, CallWatch> | undefined {
    const watches = generations.flatMap((generation) => this.#watchesOf(generation, fleetOf));
    // What was captured so far is not kept back where capturing ends, or goes to another place.
    if (this.#isCapturing) this.#mirrors.captures.flush(this.#share.endpointName);
    this.#isCapturing = generations.some(({ dataCapture = null }) => captureSettings(dataCapture) !== null);
    return watches.length === 0 ? undefined : new Map(watches);
  }

  /** For a fleet that ends: its shadow's requests are given up. */
  async leave(fleet: VariantFleet): Promise<void> {
    const calls = this.#shadows.get(fleet);
    this.#shadows.delete(fleet);
    await calls?.[Symbol.asyncDispose]();
  }

  async leaveAll(): Promise<void> {
    await Promise.all([...this.#shadows.keys()].map((fleet) => this.leave(fleet)));
  }

  /** What was captured is written soon. */
  flush(): void {
    this.#mirrors.captures.flush(this.#share.endpointName);
  }

  #watchesOf(generation: Generation, fleetOf: FleetOf): readonly (readonly [VariantFleet, CallWatch])[] {
    const settings = captureSettings(generation.dataCapture ?? null);
    const { captures: writer, options } = this.#mirrors;
    const { clock, random, newId } = options;
    const shadow = generation.variants.find((group) => !isProduction(group));
    return generation.variants.filter(isProduction).flatMap((group) => {
      const { VariantName: variantName } = group.plan.variant;
      const part = shadow === undefined ? 0 : partOf(shadow.observed.weight, group.observed.weight);
      if (settings === null && part === 0) return [];
      const to =
        shadow === undefined || part === 0
          ? null
          : {
              calls: this.#callsOf(fleetOf(generation, shadow.plan.variant.VariantName)),
              variantName: shadow.plan.variant.VariantName,
              part,
            };
      const share = this.#share;
      const watch = new CallWatch({ share, variantName, settings, writer, shadow: to, clock, random, newId });
      return [[fleetOf(generation, variantName), watch] as const];
    });
  }

  #callsOf(fleet: VariantFleet): ShadowCalls {
    const found = this.#shadows.get(fleet);
    if (found !== undefined) return found;
    const { clock, logger } = this.#mirrors.options;
    const ask = (request: InvocationRequest) => fleet.invoke(request, fleet.inServiceCount);
    const calls = new ShadowCalls({
      ask,
      share: this.#share,
      clock,
      logger,
      callsMax: shadowCallsMax,
      answerBytesPerSecond: shadowAnswerBytesPerSecond,
    });
    this.#shadows.set(fleet, calls);
    return calls;
  }
}

/** How many of a production variant's requests its shadow gets: its weight beside the variant's own, and all of them at most. */
export function partOf(shadowWeight: number, productionWeight: number): number {
  return productionWeight <= 0 ? 0 : Math.min(1, shadowWeight / productionWeight);
}
