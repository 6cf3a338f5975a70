import { AwsError } from "@galatea/base";
import type { VariantPlan } from "../definitions/index.ts";
import type { MissingIsolation } from "../instances/index.ts";
import type { InvocationReply } from "../invocations/index.ts";
import type { FleetSize, VariantFleet } from "./variant-fleet.ts";

/**
 * The instances of a variant for inference components. An instance only groups copies of components: it has no process,
 * because each copy runs in its own container. Therefore, instances are in service immediately, also after a restart.
 */
export class SharedInstances implements VariantFleet {
  readonly models = null;
  readonly #plan: VariantPlan;
  readonly #endpointName: string;
  #instanceCount = 0;

  constructor(plan: VariantPlan, { endpointName }: { readonly endpointName: string }) {
    this.#plan = plan;
    this.#endpointName = endpointName;
  }

  get variantName(): string {
    return this.#plan.variant.VariantName;
  }

  get inServiceCount(): number {
    return this.#instanceCount;
  }

  get canServe(): boolean {
    return false;
  }

  get unconfined(): MissingIsolation {
    return {};
  }

  /** Always false: sessions belong to copies of components. */
  holdsSession(): boolean {
    return false;
  }

  growTo(instanceCount: number): Promise<number> {
    const addedCount = Math.max(0, instanceCount - this.#instanceCount);
    this.#instanceCount += addedCount;
    return Promise.resolve(addedCount);
  }

  resume(instanceCount: number): void {
    this.#instanceCount = instanceCount;
  }

  shrinkTo({ instanceCount }: FleetSize): Promise<void> {
    this.#instanceCount = Math.min(this.#instanceCount, instanceCount);
    return Promise.resolve();
  }

  inService(): Promise<void> {
    return Promise.resolve();
  }

  drain(): Promise<void> {
    this.#instanceCount = 0;
    return Promise.resolve();
  }

  shutDown(): Promise<void> {
    return Promise.resolve();
  }

  invoke(): Promise<InvocationReply> {
    const text = `Endpoint ${this.#endpointName} has inference components, and requires an inference component name header.`;
    return Promise.reject(new AwsError("ValidationError", text));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return Promise.resolve();
  }
}
