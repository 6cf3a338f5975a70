import {
  MirroredCalls,
  captureSettings,
  ShadowCalls,
  type Mirrors,
  type EndpointMirrorMemory,
} from "../mirrors/index.ts";
import type { InvocationRequest } from "../invocations/index.ts";
import { isProductionGroup, type EndpointRecord, type Generation } from "./endpoint-record.ts";
import type { VariantFleet } from "./variant-fleet.ts";

/** Maximum number of concurrent requests to a shadow variant. */
const shadowCallsMax = 512;
/** Maximum rate at which a shadow variant's responses are read. Reading at this rate takes about one percent of a CPU. */
const shadowResponseBytesPerSecond = 64 * 2 ** 20;

type FleetOf = (generation: Generation, variantName: string) => VariantFleet;

/**
 * Request mirroring of one endpoint: copies requests of its production variants for data capture and to shadow variants.
 */
export class EndpointMirrors {
  readonly #mirrors: Mirrors;
  readonly #share: EndpointMirrorMemory;
  readonly #shadows = new Map<VariantFleet, ShadowCalls>();
  #isCapturing = false;

  constructor(endpointName: string, mirrors: Mirrors) {
    this.#mirrors = mirrors;
    this.#share = mirrors.account.share(endpointName);
  }

  /** Returns, by fleet, the objects that copy the fleet's requests; undefined if no requests are copied. */
  watchesOf({ generations }: EndpointRecord, fleetOf: FleetOf): ReadonlyMap<VariantFleet, MirroredCalls> | undefined {
    const watches = generations.flatMap((generation) => this.#watchesOf(generation, fleetOf));
    // The new record may end the capture or change its destination. Records that were captured before are written
    // first.
    if (this.#isCapturing) this.#mirrors.captures.flush(this.#share.endpointName);
    this.#isCapturing = generations.some(({ dataCapture = null }) => captureSettings(dataCapture) !== null);
    return watches.length === 0 ? undefined : new Map(watches);
  }

  /** Cancels the requests to a shadow fleet that is being stopped. */
  async shutDown(fleet: VariantFleet): Promise<void> {
    const calls = this.#shadows.get(fleet);
    this.#shadows.delete(fleet);
    await calls?.[Symbol.asyncDispose]();
  }

  async drainAll(): Promise<void> {
    await Promise.all([...this.#shadows.keys()].map((fleet) => this.shutDown(fleet)));
  }

  /** Starts writing the captured records to S3. */
  flush(): void {
    this.#mirrors.captures.flush(this.#share.endpointName);
  }

  #watchesOf(generation: Generation, fleetOf: FleetOf): readonly (readonly [VariantFleet, MirroredCalls])[] {
    const settings = captureSettings(generation.dataCapture ?? null);
    const { captures: writer, options } = this.#mirrors;
    const { clock, random, newId } = options;
    const shadow = generation.variants.find((group) => !isProductionGroup(group));
    return generation.variants.filter(isProductionGroup).flatMap((group) => {
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
      const watch = new MirroredCalls({ share, variantName, settings, writer, shadow: to, clock, random, newId });
      return [[fleetOf(generation, variantName), watch] as const];
    });
  }

  #callsOf(fleet: VariantFleet): ShadowCalls {
    const found = this.#shadows.get(fleet);
    if (found !== undefined) return found;
    const { clock, logger } = this.#mirrors.options;
    const call = (request: InvocationRequest) => fleet.invoke(request, fleet.inServiceCount);
    const calls = new ShadowCalls({
      invoke: call,
      share: this.#share,
      clock,
      logger,
      callsMax: shadowCallsMax,
      responseBytesPerSecond: shadowResponseBytesPerSecond,
    });
    this.#shadows.set(fleet, calls);
    return calls;
  }
}

/**
 * Returns the share of a production variant's requests that are copied to its shadow variant: the shadow's weight
 * divided by the variant's weight, at most 1.
 */
export function shadowShare(shadowWeight: number, productionWeight: number): number {
  return productionWeight <= 0 ? 0 : Math.min(1, shadowWeight / productionWeight);
}
