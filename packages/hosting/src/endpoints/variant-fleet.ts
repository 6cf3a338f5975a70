import type { Unconfined } from "../instances/index.ts";
import type { InvocationReply, InvocationRequest } from "../invocations/index.ts";
import type { GroupSize } from "./endpoint-record.ts";
import type { FleetMember } from "./fleet-member.ts";

/** The target size of a fleet. */
export type FleetSize = Pick<GroupSize, "instanceCount" | "concurrency">;

/** Models that the instances of a fleet load on demand. */
export interface DemandModels {
  readonly members: readonly FleetMember[];
  /** Loads the models that another fleet of the variant has in use, before its requests move here. */
  warmFrom(other: DemandModels, signal: AbortSignal): Promise<void>;
}

/**
 * The instances of one variant that one configuration has created: its own instances, one on demand, or those that
 * components share.
 */
export interface VariantFleet extends AsyncDisposable {
  readonly variantName: string;
  readonly inServiceCount: number;
  /** True where a request need not wait for an instance, or waits here no longer than elsewhere. */
  readonly canServe: boolean;
  /** Parts of their tenants' confinement that the instances lack on their nodes, with reasons. */
  readonly unconfined: Unconfined;
  /** Null where each instance serves the models that it started with. */
  readonly models: DemandModels | null;
  /** Resolves with the number of new instances once all are in service; there may be more already. Rejects when one does not start. */
  growTo(instanceCount: number, signal: AbortSignal): Promise<number>;
  /** Starts instances that were in service when the platform ended; retries until they are in service again. */
  resume(instanceCount: number): void;
  /** Resolves when every instance is in service; rejects where one keeps failing to start. */
  inService(signal: AbortSignal): Promise<void>;
  /** Keeps at most the size, from now on. Resolves when the surplus has drained, or the signal has aborted, and is gone. */
  shrinkTo(size: FleetSize, signal: AbortSignal): Promise<void>;
  /** Returns whether one of the instances has the session. */
  holdsSession(id: string): boolean;
  /**
   * `peerCount`: instances of the variant in service, including those of other fleets. Throws AwsError with SageMaker's
   * codes and messages.
   */
  invoke(request: InvocationRequest, peerCount: number): Promise<InvocationReply>;
  /**
   * Drains a fleet without new requests. Resolves when requests in flight and waiting have ended, or the signal has
   * aborted, and nothing is left.
   */
  drain(signal: AbortSignal): Promise<void>;
  /** Stops everything when the platform ends; unpacked models stay for the next start. */
  shutDown(): Promise<void>;
}
