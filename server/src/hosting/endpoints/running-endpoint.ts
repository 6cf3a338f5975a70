import { AwsError, Gate, orAborted } from "../../base/index.ts";
import type { VariantPlan } from "../definitions/index.ts";
import { InstanceFailure, ModelDataError } from "../instances/index.ts";
import type { InvocationReply, InvocationRequest } from "../invocations/index.ts";
import type { EndpointRecord } from "./endpoint-state.ts";
import { Fleet } from "./fleet.ts";
import type { FleetOptions } from "./fleet-options.ts";
import { WeightedRotation } from "./weighted-rotation.ts";

/** An endpoint's fleets, from the start of their instances to their end. */
export class RunningEndpoint implements AsyncDisposable {
  readonly #fleets: readonly Fleet[];
  readonly #name: string;
  readonly #rotation: WeightedRotation<Fleet>;
  readonly #idle = new Gate();
  #inFlightCount = 0;

  constructor(
    record: EndpointRecord,
    { configName, plans }: { readonly configName: string; readonly plans: readonly VariantPlan[] },
    options: { readonly fleet: FleetOptions; readonly random: () => number; readonly newId: () => string },
  ) {
    this.#name = record.name;
    this.#fleets = plans.map((plan) => {
      const instanceIds = Array.from({ length: plan.variant.InitialInstanceCount }, options.newId);
      const names = { endpointName: record.name, configName, ...record.owner, instanceIds };
      return new Fleet(plan, names, options);
    });
    this.#rotation = new WeightedRotation(this.#fleets);
  }

  get fleets(): readonly Fleet[] {
    return this.#fleets;
  }

  /** Rejects with the service's failure sentence; nothing is left of the fleets then. */
  async start(signal: AbortSignal): Promise<void> {
    const outcomes = await Promise.allSettled(
      this.#fleets.map(async (fleet) => {
        try {
          await fleet.start(signal);
        } catch (error) {
          if (signal.aborted) throw error;
          throw new Error(failureSentence(error, fleet.variantName), { cause: error });
        }
      }),
    );
    const failed = outcomes.find((outcome) => outcome.status === "rejected");
    if (failed === undefined) return;
    await this[Symbol.asyncDispose]();
    throw failed.reason;
  }

  /** For what was in service before the platform ended: tried until it is again. */
  resume(): void {
    for (const fleet of this.#fleets) fleet.resume();
  }

  async invoke(request: InvocationRequest): Promise<InvocationReply> {
    const fleet = this.#fleetOf(request);
    this.#inFlightCount += 1;
    const end = () => {
      this.#inFlightCount -= 1;
      if (this.#inFlightCount === 0) this.#idle.open();
    };
    try {
      const reply = await fleet.invoke(request);
      if (Buffer.isBuffer(reply.body)) end();
      else reply.body.once("close", end);
      return reply;
    } catch (error) {
      end();
      throw error;
    }
  }

  /** For one that gets no more requests: those in flight may end until the signal aborts; then nothing is left of the fleets. */
  async retire(signal: AbortSignal): Promise<void> {
    while (this.#inFlightCount > 0 && !signal.aborted) await orAborted(this.#idle.opened(), signal).catch(() => {});
    await this[Symbol.asyncDispose]();
  }

  /** For the platform's end: everything stops, and unpacked models stay for its next life. */
  async leave(): Promise<void> {
    await Promise.all(this.#fleets.map((fleet) => fleet.leave()));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#fleets.map((fleet) => fleet[Symbol.asyncDispose]()));
  }

  #fleetOf(request: InvocationRequest): Fleet {
    if (request.targetVariant !== null) {
      const named = this.#fleets.find((fleet) => fleet.variantName === request.targetVariant);
      if (named !== undefined) return named;
      const text = `Variant ${request.targetVariant} not found for Request of endpoint ${this.#name}.`;
      throw new AwsError("ValidationError", text);
    }
    const chosen = this.#rotation.next();
    if (chosen === null) {
      throw new AwsError("ValidationError", `Every variant of endpoint ${this.#name} has weight zero.`);
    }
    return chosen;
  }
}

const logLinesMax = 8;

/** SageMaker calls the containers of a pipeline by their names alone. */
function whoOf({ containerName }: InstanceFailure): string {
  return containerName === "primary" ? "The primary container" : `The ${containerName}`;
}

/** FailureReason: the sentence that people search for, then what the container said last. */
export function failureSentence(error: unknown, variantName: string): string {
  if (error instanceof ModelDataError) return error.message;
  if (error instanceof InstanceFailure) {
    const lines = error.lastLines.slice(-logLinesMax).join("\n");
    return (
      `${whoOf(error)} for production variant ${variantName} did not pass the ping health check. ` +
      "Please check CloudWatch logs for this endpoint. " +
      `(${error.message}${lines === "" ? "" : `; last lines:\n${lines}`})`
    );
  }
  return `Production variant ${variantName} could not be started: ${error instanceof Error ? error.message : String(error)}`;
}
