import type { Readable } from "node:stream";
import { AwsError, Gate, TaskGroup, delay, openDeadline, orAborted, unreachable } from "@galatea/base";
import type { Concurrency, VariantPlan } from "../definitions/index.ts";
import type { Unconfined } from "../instances/index.ts";
import {
  containerError,
  recordRefusal,
  timeoutText,
  tooLong,
  type InvocationReply,
  type InvocationRequest,
} from "../invocations/index.ts";
import { footprintOf, noFootprint, type Footprint } from "./endpoint-record.ts";
import { failureSentence } from "./failure-sentence.ts";
import { Fleet, type FleetNames, type FleetParts } from "./fleet.ts";
import type { FleetSize, VariantFleet } from "./variant-fleet.ts";
import { asleep, moveSleeper, requestStep, wakefulMs, type Sleeper, type SleeperEvent } from "./sleeper.ts";

/** SageMaker's bounds for serverless variants. */
const payloadBytesMax = 4 * 1024 * 1024;
const startMsMax = 180_000;
/** A request is answered that the instance is not ready yet before its client gives up. */
const wakeWaitMsMax = 55_000;

/**
 * A variant whose one instance is started by the first request, which waits for it, and ends when there has been no request for a while. One
 * instance answers all requests at once, up to the variant's concurrency: its container is a server. While it sleeps nothing of the
 * nodes is taken for it; with provisioned concurrency it does not sleep.
 */
export class ServerlessFleet implements VariantFleet {
  /** The fleet claims its memory while the instance is there. */
  readonly models = null;
  readonly #fleet: Fleet;
  readonly #parts: FleetParts;
  readonly #names: FleetNames;
  readonly #tasks: TaskGroup;
  readonly #changed = new Gate();
  #concurrency: Concurrency;
  #sleeper: Sleeper = asleep;
  #isKept = false;
  #isDraining = false;
  /** Of requests that have not been answered whole. */
  #callCount = 0;
  #quietSinceMs = 0;
  #claim: Disposable | null = null;

  constructor(
    plan: VariantPlan,
    { names, concurrency }: { readonly names: FleetNames; readonly concurrency: Concurrency },
    parts: FleetParts,
  ) {
    const { instanceLimits, invocationLimits, logger } = parts.fleet;
    const fleet = {
      ...parts.fleet,
      instanceLimits: { ...instanceLimits, startMsMax: Math.min(instanceLimits.startMsMax, startMsMax) },
      invocationLimits: {
        ...invocationLimits,
        responseBytesMax: Math.min(invocationLimits.responseBytesMax, payloadBytesMax),
      },
    };
    this.#parts = parts;
    this.#names = names;
    this.#concurrency = concurrency;
    this.#fleet = new Fleet(plan, names, { ...parts, fleet });
    this.#tasks = new TaskGroup((error) => {
      logger.error("a serverless variant is no longer looked after", { error: String(error) });
    });
  }

  get variantName(): string {
    return this.#fleet.variantName;
  }

  get inServiceCount(): number {
    return this.#fleet.inServiceCount;
  }

  get unconfined(): Unconfined {
    return this.#fleet.unconfined;
  }

  /** A request that has to wait for the instance is not better served elsewhere. */
  get canServe(): boolean {
    return !this.#isDraining;
  }

  /** With an instance: it is kept from now on. */
  async growTo(instanceCount: number, signal: AbortSignal): Promise<number> {
    if (instanceCount === 0) return 0;
    const wasKept = this.#isKept;
    const presentCount = this.inServiceCount;
    this.#isKept = true;
    try {
      await this.#awake(signal, "insists");
      return this.inServiceCount - presentCount;
    } catch (error) {
      this.#isKept = wasKept;
      this.#changed.open();
      throw error instanceof StartFailure ? error.cause : error;
    }
  }

  /** One that is kept comes up, and is tried until it does. */
  resume(instanceCount: number): void {
    if (instanceCount === 0) return;
    this.#isKept = true;
    this.#claim = this.#parts.claim(() => this.#footprint, this.#type);
    this.#move({ kind: "wake" });
    this.#fleet.resume(1);
    this.#move({ kind: "started" });
    this.#lookAfter();
  }

  async inService(signal: AbortSignal): Promise<void> {
    if (this.#isKept) await this.#fleet.inService(signal);
  }

  /** Without an instance: it sleeps when nobody has asked for a while. */
  shrinkTo({ instanceCount, concurrency }: FleetSize): Promise<void> {
    this.#concurrency = concurrency ?? this.#concurrency;
    this.#isKept = instanceCount > 0;
    this.#changed.open();
    return Promise.resolve();
  }

  /** A sleeping instance has no session any more. */
  holdsSession(id: string): boolean {
    return this.#fleet.holdsSession(id);
  }

  async invoke(request: InvocationRequest): Promise<InvocationReply> {
    const { metrics } = this.#fleet;
    const { clock } = this.#parts.fleet;
    const { max, provisioned } = this.#concurrency;
    try {
      if (this.#callCount >= max) throw this.#throttled(max);
      if ((request.declaredBytes ?? 0) > payloadBytesMax) throw tooLong(payloadBytesMax);
    } catch (error) {
      if (error instanceof AwsError) {
        recordRefusal(metrics, request, { status: error.statusFallback, nowNs: clock.monotonicNs() });
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
      if (this.#callCount === 0) this.#quietSinceMs = clock.epochMs();
      this.#changed.open();
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
    while (this.#callCount > 0 && !signal.aborted) await orAborted(this.#changed.opened(), signal).catch(() => {});
    await this[Symbol.asyncDispose]();
  }

  async leave(): Promise<void> {
    await this.#tasks[Symbol.asyncDispose]();
    await this.#fleet.leave();
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

  /** What no record tells of: an instance that is kept is in its endpoint's record. */
  get #footprint(): Footprint {
    const { plan } = this.#fleet;
    return this.#isKept ? noFootprint : footprintOf([{ plan, instanceCount: 1 }]);
  }

  async #invoke(request: InvocationRequest): Promise<InvocationReply> {
    const body = async () => limited(await request.body());
    if (this.#sleeper.at === "awake") return await this.#fleet.invoke({ ...request, body }, 1);
    const { clock, invocationLimits } = this.#parts.fleet;
    const { metrics } = this.#fleet;
    const sinceNs = clock.monotonicNs();
    try {
      using limit = openDeadline({
        clock,
        afterMs: Math.min(wakeWaitMsMax, invocationLimits.answerMsMax),
        signal: request.signal,
        late: () => this.#notReady(),
      });
      await this.#awake(limit.signal, "asks");
    } catch (error) {
      request.signal.throwIfAborted();
      const told = this.#refusalOf(error);
      recordRefusal(metrics, request, { status: told.statusFallback, nowNs: clock.monotonicNs() });
      throw told;
    }
    // The start took its part of the time that the request has.
    const waitedMs = (clock.monotonicNs() - sinceNs) / 1e6;
    const late = () => containerError(0, timeoutText("primary"), this.#place);
    const afterMs = Math.max(0, invocationLimits.answerMsMax - waitedMs);
    const deadline = openDeadline({ clock, afterMs, signal: request.signal, late });
    try {
      const reply = await this.#fleet.invoke({ ...request, body, signal: deadline.signal }, 1);
      if (Buffer.isBuffer(reply.body)) deadline[Symbol.dispose]();
      return {
        ...reply,
        done: () => {
          deadline[Symbol.dispose]();
          reply.done();
        },
      };
    } catch (error) {
      deadline[Symbol.dispose]();
      throw error;
    }
  }

  /** Resolves when the instance is awake, having started it where it sleeps. Who insists does so shortly after a failed start, too. */
  async #awake(signal: AbortSignal, how: "asks" | "insists"): Promise<void> {
    for (let hasWaited = false; ; hasWaited = true) {
      signal.throwIfAborted();
      const changed = this.#changed.opened();
      const nowMs = how === "insists" && !hasWaited ? Infinity : this.#parts.fleet.clock.epochMs();
      const step = requestStep(this.#sleeper, { nowMs, hasWaited });
      switch (step.do) {
        case "go":
          return;
        case "fail":
          throw new StartFailure(step.error, step.againInMs);
        case "wake":
          this.#wake();
          break;
        case "wait":
          await orAborted(changed, signal);
          break;
        default:
          unreachable(step);
      }
    }
  }

  #wake(): void {
    const { clock, logger } = this.#parts.fleet;
    this.#move({ kind: "wake" });
    this.#tasks.run(async (closing) => {
      const sinceNs = clock.monotonicNs();
      try {
        this.#claim = this.#parts.claim(() => this.#footprint, this.#type);
        await this.#fleet.growTo(1, closing);
      } catch (error) {
        this.#release();
        const cause = closing.aborted ? this.#ended() : error;
        const endpoint = this.#names.endpointName;
        if (!closing.aborted) {
          logger.warning("a serverless variant does not start", { endpoint, error: String(error) });
        }
        return this.#move({ kind: "start-failed", error: cause, nowMs: clock.epochMs() });
      }
      this.#fleet.metrics.recordServerless("ModelSetupTime", (clock.monotonicNs() - sinceNs) / 1000);
      this.#quietSinceMs = clock.epochMs();
      this.#move({ kind: "started" });
      this.#lookAfter();
    });
  }

  /** While it is awake: until nobody has asked for a while. */
  #lookAfter(): void {
    const { clock, instanceLimits } = this.#parts.fleet;
    this.#tasks.run(async (closing) => {
      for (;;) {
        const changed = this.#changed.opened();
        const calls = { isKept: this.#isKept, callCount: this.#callCount, quietSinceMs: this.#quietSinceMs };
        const restMs = wakefulMs(calls, { nowMs: clock.epochMs(), idleMs: instanceLimits.idleMsMax });
        if (restMs === 0) break;
        if (restMs === null) await orAborted(changed, closing);
        else await delay(clock, restMs, closing);
      }
      this.#move({ kind: "sleep" });
      await this.#fleet.shrinkTo({ instanceCount: 0 }, closing);
      this.#release();
      this.#move({ kind: "stopped" });
    });
  }

  #release(): void {
    this.#claim?.[Symbol.dispose]();
    this.#claim = null;
  }

  #move(event: SleeperEvent): void {
    this.#sleeper = moveSleeper(this.#sleeper, event);
    this.#changed.open();
  }

  get #place() {
    const { region, accountId, endpointName } = this.#names;
    const logGroup = `/aws/sagemaker/Endpoints/${endpointName}`;
    const logStreamArn = `arn:aws:logs:${region}:${accountId}:log-group:${logGroup}`;
    const { logsLink } = this.#parts.fleet;
    return { containerName: "primary", logGroup, logStreamArn, region, accountId, logsLink };
  }

  #throttled(max: number): AwsError {
    const text =
      `Rate exceeded: variant ${this.variantName} of endpoint ${this.#names.endpointName} answers ${max} requests at once (MaxConcurrency). ` +
      "Send the request again, or raise MaxConcurrency with UpdateEndpointWeightsAndCapacities.";
    return new AwsError("ThrottlingException", text, { statusFallback: 429 });
  }

  #ended(): AwsError {
    return new AwsError("ServiceUnavailable", "its instances end", { statusFallback: 503 });
  }

  #notReady(): AwsError {
    const text =
      `The model is not ready for inference: it is being loaded (the instance of serverless variant ${this.variantName} is being started). ` +
      "Loading goes on; send the request again.";
    return new AwsError("ModelNotReadyException", text, { statusFallback: 429 });
  }

  /** What is told of a request that waited in vain. */
  #refusalOf(error: unknown): AwsError {
    if (!(error instanceof StartFailure)) return error instanceof AwsError ? error : this.#notReady();
    const { cause, againInMs } = error;
    if (cause instanceof AwsError) {
      const text = `Serverless variant ${this.variantName} cannot be started now: ${cause.message}`;
      return new AwsError("ServiceUnavailable", text, { statusFallback: 503, cause });
    }
    const when = againInMs === 0 ? "the next request" : `a request in ${Math.ceil(againInMs / 1000)} s or later`;
    const text = `${failureSentence(cause, this.variantName)} It is started again by ${when}.`;
    return containerError(503, text, this.#place);
  }
}

/** The start that a request waited for has failed with its cause. */
class StartFailure extends Error {
  readonly againInMs: number;

  constructor(cause: unknown, againInMs: number) {
    super("the instance did not start", { cause });
    this.name = "StartFailure";
    this.againInMs = againInMs;
  }
}

function limited(body: Buffer | Readable): Buffer | Readable {
  if (Buffer.isBuffer(body) && body.length > payloadBytesMax) throw tooLong(payloadBytesMax);
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
