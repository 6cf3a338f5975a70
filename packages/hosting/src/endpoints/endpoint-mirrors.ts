import { CallWatch, captureSettings, ShadowCalls, type Mirrors, type MirrorShare } from "../mirrors/index.ts";
import type { InvocationRequest } from "../invocations/index.ts";
import { isProduction, type EndpointRecord, type Generation } from "./endpoint-record.ts";
import type { VariantFleet } from "./variant-fleet.ts";

/** Maximum number of concurrent requests to a shadow variant. */
const shadowCallsMax = 512;
/** Maximum rate at which a shadow variant's responses are read; about one percent of this process's CPU time. */
const shadowAnswerBytesPerSecond = 64 * 2 ** 20;

type FleetOf = (generation: Generation, variantName: string) => VariantFleet;

/**
 * The calls of an endpoint that are copied for data capture or a shadow variant: their fleets, and the copies'
 * settings.
 */
export class EndpointMirrors {
  readonly #mirrors: Mirrors;
  readonly #share: MirrorShare;
  readonly #shadows = new Map<VariantFleet, ShadowCalls>();
  #isCapturing = false;

  constructor(endpointName: string, mirrors: Mirrors) {
    this.#mirrors = mirrors;
    this.#share = mirrors.account.share(endpointName);
  }

  /** Returns the watch of each fleet's calls; undefined if no calls are watched. */
  watchesOf({ generations }: EndpointRecord, fleetOf: FleetOf): ReadonlyMap<VariantFleet, CallWatch> | undefined {
    const watches = generations.flatMap((generation) => this.#watchesOf(generation, fleetOf));
    // Captured records are written at once when the capture ends or its target changes.
    if (this.#isCapturing) this.#mirrors.captures.flush(this.#share.endpointName);
    this.#isCapturing = generations.some(({ dataCapture = null }) => captureSettings(dataCapture) !== null);
    return watches.length === 0 ? undefined : new Map(watches);
  }

  /** Cancels the shadow requests of a fleet that ends. */
  async shutDown(fleet: VariantFleet): Promise<void> {
    const calls = this.#shadows.get(fleet);
    this.#shadows.delete(fleet);
    await calls?.[Symbol.asyncDispose]();
  }

  async leaveAll(): Promise<void> {
    await Promise.all([...this.#shadows.keys()].map((fleet) => this.shutDown(fleet)));
  }

  /** Starts writing the captured records. */
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
      const part = shadow === undefined ? 0 : shadowShare(shadow.observed.weight, group.observed.weight);
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
      invoke: ask,
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

/**
 * Returns the share of a production variant's requests that its shadow gets: its weight divided by the variant's, at
 * most 1.
 */
export function shadowShare(shadowWeight: number, productionWeight: number): number {
  return productionWeight <= 0 ? 0 : Math.min(1, shadowWeight / productionWeight);
}
