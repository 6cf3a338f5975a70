import { AwsError, ChangeNotifier, delay, openDeadline } from "@galatea/base";
import { isComponentVariant } from "../definitions/index.ts";
import { groupKey, isProductionGroup, routingTable, FleetRouting, type EndpointRecord } from "../endpoints/index.ts";
import { RequestNotSent, type InvocationReply, type InvocationRequest } from "../invocations/index.ts";
import { captureSettings } from "../mirrors/index.ts";
import { FollowedFleet, type FollowedFleetOptions } from "./followed-fleet.ts";
import type { InstanceOnAgent } from "./listed-instances.ts";

/** Limits the number of instances that a request can crash, if it crashes every container while it loads its model. */
const attemptsMax = 3;
const retryEveryMs = 100;

const servingStates: readonly EndpointRecord["state"]["at"][] = [
  "InService",
  "Updating",
  "RollingBack",
  "UpdateRollbackFailed",
];

/**
 * Returns whether gateways can invoke an endpoint themselves. They have no queues, no on-demand instances, no placement
 * of components, and no copies for shadow variants and data capture.
 */
export function isFollowable({ state, generations }: EndpointRecord): boolean {
  return (
    servingStates.includes(state.at) &&
    generations.every(
      ({ asyncInference, dataCapture = null, variants }) =>
        asyncInference === undefined &&
        captureSettings(dataCapture) === null &&
        variants.every(
          (group) =>
            isProductionGroup(group) &&
            group.plan.variant.ServerlessConfig === undefined &&
            !isComponentVariant(group.plan.variant),
        ),
    )
  );
}

/** An endpoint that another process runs. Routes requests to its instances as its record says. */
export class FollowedEndpoint implements AsyncDisposable {
  readonly #options: FollowedFleetOptions;
  readonly #fleets = new Map<string, FollowedFleet>();
  readonly #traffic: FleetRouting<FollowedFleet>;
  readonly #changed = new ChangeNotifier();
  readonly name: string;

  constructor(name: string, options: FollowedFleetOptions) {
    this.name = name;
    this.#options = options;
    this.#traffic = new FleetRouting(name);
  }

  /** True if an instance is in service. */
  get canServe(): boolean {
    return this.#traffic.inServiceCount > 0;
  }

  /** Routes requests as the record says, to those of the listed instances that the record contains. */
  follow(record: EndpointRecord, listed: readonly InstanceOnAgent[]): void {
    const present = new Set<string>();
    for (const { number, configName, variants } of record.generations) {
      for (const group of variants) {
        const key = groupKey(number, group.plan.variant.VariantName);
        const identity = {
          endpointName: record.name,
          configName,
          owner: record.owner,
          placementKey: record.placementKey,
        };
        const fleet = this.#fleets.get(key) ?? new FollowedFleet(group, identity, this.#options);
        this.#fleets.set(key, fleet);
        present.add(key);
        const { instanceCount } = group.observed;
        fleet.setInstances(listed.filter(({ fleetKey, ordinal }) => fleetKey === key && ordinal < instanceCount));
      }
    }
    const routes = routingTable(record).flatMap((route) => {
      const fleet = this.#fleets.get(groupKey(route.generation, route.variantName));
      return fleet === undefined ? [] : [{ ...route, fleet }];
    });
    this.#traffic.setRoutes(routes);
    for (const [key, fleet] of this.#fleets) {
      if (present.has(key)) continue;
      this.#fleets.delete(key);
      void fleet[Symbol.asyncDispose]();
    }
    this.#changed.notify();
  }

  /**
   * Invokes the endpoint. Throws AwsError with the error codes and messages of SageMaker Runtime. A request that no
   * instance has received is sent again after the next change of the instances, a limited number of times.
   */
  async invoke(request: InvocationRequest): Promise<InvocationReply> {
    const { clock, limits } = this.#options;
    using deadline = openDeadline({ clock, afterMs: limits.restartWaitMsMax, signal: request.signal });
    const read: { body: ReturnType<InvocationRequest["body"]> | null } = { body: null };
    const again = { ...request, body: () => (read.body ??= request.body()) };
    for (let sentCount = 0; ;) {
      const changed = this.#changed.nextChange();
      const { fleet, peerCount } = this.#traffic.choose(request.targetVariant);
      try {
        if (fleet.canServe) {
          sentCount += 1;
          return await fleet.invoke(again, peerCount);
        }
      } catch (error) {
        if (!(error instanceof RequestNotSent)) throw error;
        const isRepeatable = read.body === null || Buffer.isBuffer(await read.body);
        if (!isRepeatable || sentCount >= attemptsMax) throw this.#unavailable(error);
      }
      await Promise.race([changed, delay(clock, retryEveryMs, deadline.signal)]).catch(() => {});
      request.signal.throwIfAborted();
      if (deadline.hasExpired) throw this.#unavailable();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#fleets.values()].map((fleet) => fleet[Symbol.asyncDispose]()));
    this.#fleets.clear();
  }

  #unavailable(cause?: RequestNotSent): AwsError {
    const text = `No instance of endpoint ${this.name} has received the request. Retry later.`;
    return new AwsError("ServiceUnavailable", text, { statusFallback: 503, ...(cause && { cause }) });
  }
}
