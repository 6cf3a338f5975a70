import type { MissingIsolation } from "../instances/index.ts";
import type { InvocationReply, InvocationRequest } from "../invocations/index.ts";
import type { GroupSize } from "./endpoint-record.ts";
import type { VariantInstance } from "./variant-instance.ts";

/** The target size of a fleet. */
export type FleetSize = Pick<GroupSize, "instanceCount" | "concurrency">;

/** The models that multi-model instances of a fleet load on demand. */
export interface OnDemandModels {
  readonly members: readonly VariantInstance[];
  /** Loads the models that are in use in another fleet of the variant, before its requests are routed here. */
  warmFrom(other: OnDemandModels, signal: AbortSignal): Promise<void>;
}

/**
 * The instances of one variant of a generation. Implementations: `Fleet` for ordinary instances, `ServerlessFleet` for
 * one on-demand instance, and `SharedInstances` for instances with inference components.
 */
export interface VariantFleet extends AsyncDisposable {
  readonly variantName: string;
  readonly inServiceCount: number;
  /** True if the fleet can serve a request now, or if waiting for its instance is not slower than using another fleet. */
  readonly canServe: boolean;
  /** Kinds of tenant isolation that the nodes cannot apply to the instances, with the reasons. */
  readonly unconfined: MissingIsolation;
  /** Null if the instances load all their models at start. */
  readonly models: OnDemandModels | null;
  /** Starts instances until there are at least `instanceCount`. Resolves with the number of new ones when all are in service; rejects if one fails to start. */
  growTo(instanceCount: number, signal: AbortSignal): Promise<number>;
  /** Starts instances that were in service when the platform stopped. Failed starts are retried until they are in service. */
  resume(instanceCount: number): void;
  /** Resolves when all instances are in service; rejects if one keeps failing to start. */
  inService(signal: AbortSignal): Promise<void>;
  /** Reduces the fleet to a size. Resolves when the surplus instances are stopped: after they have drained or the signal has aborted. */
  shrinkTo(size: FleetSize, signal: AbortSignal): Promise<void>;
  /** Returns whether one of the instances holds the stateful session. */
  holdsSession(id: string): boolean;
  /**
   * Sends a request to an instance. `peerCount` is the number of the variant's instances in service, including those of
   * other fleets. Throws AwsError with SageMaker's codes and messages.
   */
  invoke(request: InvocationRequest, peerCount: number): Promise<InvocationReply>;
  /**
   * Drains all instances and stops them. Resolves when they are stopped: after all requests have ended or the signal has
   * aborted.
   */
  drain(signal: AbortSignal): Promise<void>;
  /** Stops all instances because the platform shuts down. Unpacked models stay on disk for the next start. */
  shutDown(): Promise<void>;
}
