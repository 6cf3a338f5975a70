import type { Readable } from "node:stream";
import { AwsError, ChangeNotifier, TaskGroup, delay, openDeadline, rejectOnAbort, unreachable } from "@galatea/base";
import type { ServerlessConcurrency, VariantPlan } from "../definitions/index.ts";
import type { MissingIsolation } from "../instances/index.ts";
import {
  containerError,
  recordRejection,
  payloadTooLarge,
  type InvocationReply,
  type InvocationRequest,
} from "../invocations/index.ts";
import { groupsFootprint, emptyFootprint, type Footprint } from "./endpoint-record.ts";
import { instanceFailureReason } from "./instance-failure-reason.ts";
import type { FleetIdentity } from "./fleet-identity.ts";
import { Fleet, type FleetDependencies } from "./fleet.ts";
import type { FleetSize, VariantFleet } from "./variant-fleet.ts";
import {
  coldState,
  nextServerlessState,
  nextRequestStep,
  msUntilIdleStop,
  type ServerlessState,
  type ServerlessEvent,
} from "./serverless-state.ts";

/** SageMaker's limits for serverless variants: maximum bytes of a body, and maximum milliseconds of a start. */
const payloadBytesMax = 4 * 1024 * 1024;
const startMsMax = 180_000;
/**
 * Maximum wait of a request for a start, in milliseconds. It is shorter than the time-out of clients, so that they get
 * an error response.
 */
const startWaitMsMax = 55_000;

/**
 * The single instance of a serverless variant. The first request starts the instance and waits for it; after an idle time
 * the instance is stopped. It serves all requests up to the variant's maximum concurrency. A cold instance uses no node
 * resources. With provisioned concurrency, the instance is always running.
 */
export class ServerlessFleet implements VariantFleet {
  /** Null, because serverless variants do not support multi-model containers. */
  readonly models = null;
  readonly #fleet: Fleet;
  readonly #dependencies: FleetDependencies;
  readonly #names: FleetIdentity;
  readonly #tasks: TaskGroup;
  readonly #changed = new ChangeNotifier();
  #concurrency: ServerlessConcurrency;
  #state: ServerlessState = coldState;
  #isKept = false;
  #isDraining = false;
  /** Number of requests whose responses are incomplete. */
  #callCount = 0;
  #idleSinceMs = 0;
  #claim: Disposable | null = null;

  constructor(
    plan: VariantPlan,
    { names, concurrency }: { readonly names: FleetIdentity; readonly concurrency: ServerlessConcurrency },
    dependencies: FleetDependencies,
  ) {
    const { instanceLimits, invocationLimits, logger } = dependencies.fleet;
    const fleet = {
      ...dependencies.fleet,
      instanceLimits: { ...instanceLimits, startMsMax: Math.min(instanceLimits.startMsMax, startMsMax) },
      invocationLimits: {
        ...invocationLimits,
        responseBytesMax: Math.min(invocationLimits.responseBytesMax, payloadBytesMax),
      },
    };
    this.#dependencies = dependencies;
    this.#names = names;
    this.#concurrency = concurrency;
    this.#fleet = new Fleet(plan, names, { ...dependencies, fleet });
    this.#tasks = new TaskGroup((error) => {
      logger.error("the supervision of a serverless variant has stopped", { error: String(error) });
    });
  }

  get variantName(): string {
    return this.#fleet.variantName;
  }

  get inServiceCount(): number {
    return this.#fleet.inServiceCount;
  }

  get unconfined(): MissingIsolation {
    return this.#fleet.unconfined;
  }

  /** True until the fleet drains: waiting for the instance's start takes no longer here than in another fleet. */
  get canServe(): boolean {
    return !this.#isDraining;
  }

  /** Starts the instance and keeps it running, for provisioned concurrency. */
  async growTo(instanceCount: number, signal: AbortSignal): Promise<number> {
    if (instanceCount === 0) return 0;
    const wasKept = this.#isKept;
    const presentCount = this.inServiceCount;
    this.#isKept = true;
    try {
      await this.#untilRunning(signal, "insists");
      return this.inServiceCount - presentCount;
    } catch (error) {
      this.#isKept = wasKept;
      this.#changed.notify();
      throw error instanceof StartFailure ? error.cause : error;
    }
  }

  /** Starts an instance that is kept running; retries until it is in service. */
  resume(instanceCount: number): void {
    if (instanceCount === 0) return;
    this.#isKept = true;
    this.#claim = this.#dependencies.claim(() => this.#footprint, this.#type);
    this.#applyEvent({ kind: "start" });
    this.#fleet.resume(1);
    this.#applyEvent({ kind: "started" });
    this.#scheduleIdleStop();
  }

  async inService(signal: AbortSignal): Promise<void> {
    if (this.#isKept) await this.#fleet.inService(signal);
  }

  /**
   * Sets the maximum and the provisioned concurrency. Without provisioned concurrency, the instance is stopped after
   * the idle time.
   */
  shrinkTo({ instanceCount, concurrency }: FleetSize): Promise<void> {
    this.#concurrency = concurrency ?? this.#concurrency;
    this.#isKept = instanceCount > 0;
    this.#changed.notify();
    return Promise.resolve();
  }

  /** Returns whether the instance has an open session with this id. A cold instance has none. */
  holdsSession(id: string): boolean {
    return this.#fleet.holdsSession(id);
  }

  async invoke(request: InvocationRequest): Promise<InvocationReply> {
    const { metrics } = this.#fleet;
    const { clock } = this.#dependencies.fleet;
    const { max, provisioned } = this.#concurrency;
    try {
      if (this.#callCount >= max) throw this.#throttled(max);
      if ((request.declaredBytes ?? 0) > payloadBytesMax) throw payloadTooLarge(payloadBytesMax);
    } catch (error) {
      if (error instanceof AwsError) {
        recordRejection(metrics, request, { error, nowNs: clock.monotonicNs() });
      }
      throw error;
    }
    this.#callCount += 1;
    metrics.recordServerless("ServerlessConcurrentExecutionsUtilization", this.#callCount / max);
    if (provisioned > 0) {
      const isSpilled = this.#callCount > provisioned;
      const warmCount = Math.min(this.#callCount, provisioned);
      metrics.recordServerless("ServerlessProvisionedConcurrencyExecutions", warmCount);
      metrics.recordServerless("ServerlessProvisionedConcurrencyUtilization", warmCount / provisioned);
      metrics.recordServerless("ServerlessProvisionedConcurrencyInvocations", isSpilled ? 0 : 1);
      metrics.recordServerless("ServerlessProvisionedConcurrencySpilloverInvocations", isSpilled ? 1 : 0);
    }
    const end = once(() => {
      this.#callCount -= 1;
      if (this.#callCount === 0) this.#idleSinceMs = clock.epochMs();
      this.#changed.notify();
    });
    try {
      const reply = await this.#invoke(request);
      if (Buffer.isBuffer(reply.body)) end();
      return {
        ...reply,
        done: () => {
          reply.done();
          end();
        },
      };
    } catch (error) {
      end();
      throw error;
    }
  }

  async drain(signal: AbortSignal): Promise<void> {
    this.#isDraining = true;
    while (this.#callCount > 0 && !signal.aborted)
      await rejectOnAbort(this.#changed.nextChange(), signal).catch(() => {});
    await this[Symbol.asyncDispose]();
  }

  async shutDown(): Promise<void> {
    await this.#tasks[Symbol.asyncDispose]();
    await this.#fleet.shutDown();
    this.#release();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tasks[Symbol.asyncDispose]();
    await this.#fleet[Symbol.asyncDispose]();
    this.#release();
  }

  get #type(): string {
    return this.#fleet.plan.variant.InstanceType;
  }

  /** Footprint of the running instance. It is empty with provisioned concurrency, because the endpoint's record contains the instance then. */
  get #footprint(): Footprint {
    const { plan } = this.#fleet;
    return this.#isKept ? emptyFootprint : groupsFootprint([{ plan, instanceCount: 1 }]);
  }

  async #invoke(request: InvocationRequest): Promise<InvocationReply> {
    const body = async () => limitPayload(await request.body());
    if (this.#state.at === "running") return await this.#fleet.invoke({ ...request, body }, 1);
    const { clock, invocationLimits } = this.#dependencies.fleet;
    const { metrics } = this.#fleet;
    const sinceNs = clock.monotonicNs();
    try {
      using limit = openDeadline({
        clock,
        afterMs: Math.min(startWaitMsMax, invocationLimits.responseMsMax),
        signal: request.signal,
        createError: () => this.#notReady(),
      });
      await this.#untilRunning(limit.signal, "asks");
    } catch (error) {
      request.signal.throwIfAborted();
      const refusal = this.#refusalOf(error);
      recordRejection(metrics, request, { error: refusal, nowNs: clock.monotonicNs() });
      throw refusal;
    }
    return await this.#fleet.invoke({ ...request, body, waitedMs: (clock.monotonicNs() - sinceNs) / 1e6 }, 1);
  }

  /**
   * Resolves when the instance is running; starts it if it is cold. With "insists", a start is attempted even if the
   * retry delay after an earlier failure has not expired. Rejects with StartFailure.
   */
  async #untilRunning(signal: AbortSignal, how: "asks" | "insists"): Promise<void> {
    for (let hasWaited = false; ; hasWaited = true) {
      signal.throwIfAborted();
      const changed = this.#changed.nextChange();
      const nowMs = how === "insists" && !hasWaited ? Infinity : this.#dependencies.fleet.clock.epochMs();
      const step = nextRequestStep(this.#state, { nowMs, hasWaited });
      switch (step.do) {
        case "go":
          return;
        case "fail":
          throw new StartFailure(step.error, step.againInMs);
        case "start":
          this.#start();
          break;
        case "wait":
          await rejectOnAbort(changed, signal);
          break;
        default:
          unreachable(step);
      }
    }
  }

  #start(): void {
    const { clock, logger } = this.#dependencies.fleet;
    this.#applyEvent({ kind: "start" });
    this.#tasks.run(async (closing) => {
      const sinceNs = clock.monotonicNs();
      try {
        this.#claim = this.#dependencies.claim(() => this.#footprint, this.#type);
        await this.#fleet.growTo(1, closing);
      } catch (error) {
        this.#release();
        const cause = closing.aborted ? this.#ended() : error;
        const endpoint = this.#names.endpointName;
        if (!closing.aborted) {
          logger.warning("a serverless variant does not start", { endpoint, error: String(error) });
        }
        return this.#applyEvent({ kind: "start-failed", error: cause, nowMs: clock.epochMs() });
      }
      this.#fleet.metrics.recordServerless("ModelSetupTime", (clock.monotonicNs() - sinceNs) / 1000);
      this.#idleSinceMs = clock.epochMs();
      this.#applyEvent({ kind: "started" });
      this.#scheduleIdleStop();
    });
  }

  /** Stops a running instance after the idle time. */
  #scheduleIdleStop(): void {
    const { clock, instanceLimits } = this.#dependencies.fleet;
    this.#tasks.run(async (closing) => {
      for (;;) {
        const changed = this.#changed.nextChange();
        const calls = { isKept: this.#isKept, callCount: this.#callCount, quietSinceMs: this.#idleSinceMs };
        const restMs = msUntilIdleStop(calls, { nowMs: clock.epochMs(), idleMs: instanceLimits.idleMsMax });
        if (restMs === 0) break;
        if (restMs === null) await rejectOnAbort(changed, closing);
        else await delay(clock, restMs, closing);
      }
      this.#applyEvent({ kind: "stop" });
      await this.#fleet.shrinkTo({ instanceCount: 0 }, closing);
      this.#release();
      this.#applyEvent({ kind: "stopped" });
    });
  }

  #release(): void {
    this.#claim?.[Symbol.dispose]();
    this.#claim = null;
  }

  #applyEvent(event: ServerlessEvent): void {
    this.#state = nextServerlessState(this.#state, event);
    this.#changed.notify();
  }

  get #place() {
    const { region, accountId, endpointName } = this.#names;
    const logGroup = `/aws/sagemaker/Endpoints/${endpointName}`;
    const logStreamArn = `arn:aws:logs:${region}:${accountId}:log-group:${logGroup}`;
    const { logsLink } = this.#dependencies.fleet;
    return { containerName: "primary", logGroup, logStreamArn, region, accountId, logsLink };
  }

  #throttled(max: number): AwsError {
    const text =
      `Rate exceeded: variant ${this.variantName} of endpoint ${this.#names.endpointName} processes at most ${max} requests at once (MaxConcurrency). ` +
      "Send the request again, or raise MaxConcurrency with UpdateEndpointWeightsAndCapacities.";
    return new AwsError("ThrottlingException", text, { statusFallback: 429 });
  }

  #ended(): AwsError {
    return new AwsError("ServiceUnavailable", "the endpoint's instances are being stopped", { statusFallback: 503 });
  }

  #notReady(): AwsError {
    const text =
      `The model is not ready for inference: it is being loaded (the instance of serverless variant ${this.variantName} is being started). ` +
      "Loading continues; send the request again.";
    return new AwsError("ModelNotReadyException", text, { statusFallback: 429 });
  }

  /** Returns the error for a request whose wait has failed. */
  #refusalOf(error: unknown): AwsError {
    if (!(error instanceof StartFailure)) return error instanceof AwsError ? error : this.#notReady();
    const { cause, againInMs } = error;
    if (cause instanceof AwsError) {
      const text = `Serverless variant ${this.variantName} cannot be started now: ${cause.message}`;
      return new AwsError("ServiceUnavailable", text, { statusFallback: 503, cause });
    }
    const when = againInMs === 0 ? "the next request" : `a request in ${Math.ceil(againInMs / 1000)} s or later`;
    const text = `${instanceFailureReason(cause, this.variantName)} It is started again by ${when}.`;
    return containerError(503, text, this.#place);
  }
}

/**
 * The error if the start of an instance has failed. `cause` is the failure, and `againInMs` the time until a new start
 * is allowed.
 */
class StartFailure extends Error {
  readonly againInMs: number;

  constructor(cause: unknown, againInMs: number) {
    super("the instance did not start", { cause });
    this.name = "StartFailure";
    this.againInMs = againInMs;
  }
}

function limitPayload(body: Buffer | Readable): Buffer | Readable {
  if (Buffer.isBuffer(body) && body.length > payloadBytesMax) throw payloadTooLarge(payloadBytesMax);
  return body;
}

function once(act: () => void): () => void {
  let isDone = false;
  return () => {
    if (isDone) return;
    isDone = true;
    act();
  };
}
