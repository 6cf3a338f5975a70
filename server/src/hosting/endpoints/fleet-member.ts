import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { AwsError, delay, readWhole, takeForCall, type ByteLease } from "../../base/index.ts";
import { ModelAgent, agentLimits, type ModelLease } from "../agent/index.ts";
import { errorText, type ContainerClient, type ContainerReply } from "../instances/index.ts";
import type { VariantMetrics } from "../series/index.ts";
import type { FleetOptions } from "./fleet.ts";
import { Instance } from "../instances/index.ts";
import { containerEnvironment, modelDataUrlOf, type IssuedCredentials } from "../instances/index.ts";
import type { InstanceBudget } from "../definitions/index.ts";
import {
  containerError,
  heldBytesMax,
  modelErrorOf,
  timeoutText,
  tooLong,
  type InvocationPlace,
  type InvocationReply,
  type InvocationRequest,
} from "../invocations/index.ts";
import { writeOwner } from "../instances/index.ts";
import { createModelSource, downloadModelData } from "../instances/index.ts";
import type { VariantPlan } from "../definitions/index.ts";

export interface MemberOptions {
  readonly id: string;
  readonly plan: VariantPlan;
  readonly budget: InstanceBudget;
  readonly modelMemoryBytes: number;
  readonly modelDiskBytes: number;
  readonly fleet: FleetOptions;
  readonly metrics: VariantMetrics;
  readonly place: Omit<InvocationPlace, "logStreamArn">;
}

interface Exchange {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | Readable;
  readonly signal: AbortSignal;
}

/** Between looks at a container whose connection broke. */
const suspectPingIntervalMs = 20;

/** What one invocation came to; every metric of it is recorded from this, once. */
interface Outcome {
  status: number;
  modelNs: number;
  target: string | null;
  cacheHit: boolean | null;
  waitedUs: number;
}

const noOutcome = (request: InvocationRequest): Outcome => ({
  status: 0,
  modelNs: 0,
  target: request.targetModel,
  cacheHit: null,
  waitedUs: 0,
});

/** One instance of a variant: its container, its models where it has many, and the requests in flight there. */
export class FleetMember implements AsyncDisposable {
  readonly #options: MemberOptions;
  readonly #instance: Instance;
  readonly #agent: ModelAgent | null;
  readonly #place: InvocationPlace;
  readonly #directory: string;
  readonly #credentials: IssuedCredentials;
  inFlightCount = 0;

  constructor(options: MemberOptions) {
    this.#options = options;
    const { fleet, plan, id } = options;
    this.#directory = join(fleet.instancesDirectory, id);
    const group = `/aws/sagemaker/Endpoints/${options.place.endpointName}`;
    const stream = `${plan.variant.VariantName}/${id}`;
    const { region, accountId } = options.place;
    this.#place = {
      ...options.place,
      logStreamArn: `arn:aws:logs:${region}:${accountId}:log-group:${group}:log-stream:${stream}`,
    };
    const multiModel = plan.model.container.Mode === "MultiModel";
    const startSeconds = plan.variant.ContainerStartupHealthCheckTimeoutInSeconds;
    const { instanceLimits } = fleet;
    const write = fleet.openLog(group, stream);
    this.#credentials = fleet.issue({
      instanceId: id,
      endpointName: options.place.endpointName,
      accountId,
      region,
      modelDataUrl: modelDataUrlOf(plan.model.container),
    });
    this.#instance = new Instance({
      host: fleet.host,
      spec: {
        instanceId: id,
        title: `${options.place.endpointName}/${stream}`,
        runtime: "tritonserver",
        mlRoot: this.#mlRoot,
        environment: containerEnvironment(plan.model.container, this.#credentials, region),
        budget: options.budget,
        modelMemoryBytes: options.modelMemoryBytes,
        output: (line) => write(Buffer.from(`${line}\n`)),
      },
      limits: startSeconds === undefined ? instanceLimits : { ...instanceLimits, startMsMax: startSeconds * 1000 },
      clock: fleet.clock,
      logger: fleet.logger,
      prepare: (signal) => this.#prepare(signal),
      onLost: () => this.#agent?.containerLost(),
    });
    this.#agent = multiModel ? this.#openAgent() : null;
  }

  get id(): string {
    return this.#options.id;
  }

  get isInService(): boolean {
    return this.#instance.client !== null;
  }

  get loadedCount(): number {
    return this.#agent?.loadedCount ?? 0;
  }

  get agent(): ModelAgent | null {
    return this.#agent;
  }

  /** Brings the model's data and the container into service. On failure nothing of it is left. */
  async start(signal: AbortSignal): Promise<void> {
    try {
      await this.#instance.start(signal);
    } catch (error) {
      await this[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** For what was in service before the platform ended: tried until it is again. */
  resume(): void {
    this.#instance.resume();
  }

  /** Resolves once the container is in service; rejects while its starts keep failing. */
  async ready(signal: AbortSignal): Promise<void> {
    await this.#instance.ready(signal);
  }

  usage(): ReturnType<Instance["usage"]> {
    return this.#instance.usage();
  }

  get diskUsedBytes(): number {
    return this.#agent?.diskUsedBytes ?? 0;
  }

  /** For the platform's end: everything stops, and unpacked models stay for its next life. */
  async leave(): Promise<void> {
    await this.#stop();
    if (this.#agent === null) await rm(this.#directory, { recursive: true, force: true });
  }

  async #stop(): Promise<void> {
    await this.#agent?.[Symbol.asyncDispose]();
    await this.#instance[Symbol.asyncDispose]();
    this.#credentials[Symbol.dispose]();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#stop();
    await rm(this.#directory, { recursive: true, force: true });
  }

  async invoke(request: InvocationRequest): Promise<InvocationReply> {
    const { fleet } = this.#options;
    if (this.inFlightCount >= fleet.invocationLimits.requestsMax) {
      const text = "Too many requests are in flight on this instance";
      throw this.#refused(request, new AwsError("ServiceUnavailable", text, { statusFallback: 503 }));
    }
    this.inFlightCount += 1;
    const outcome = noOutcome(request);
    const leases: ModelLease[] = [];
    let finished = false;
    const finish = () => {
      if (finished) return;
      finished = true;
      this.inFlightCount -= 1;
      for (const lease of leases) lease[Symbol.dispose]();
      this.#record(request, outcome);
    };
    try {
      if (this.#agent !== null) leases.push(await this.#lease(this.#agent, request, outcome));
      const reply = await this.#send(request, leases, outcome, finish);
      if (Buffer.isBuffer(reply.body)) finish();
      return reply;
    } catch (error) {
      if (error instanceof AwsError && outcome.status === 0) outcome.status = error.statusFallback;
      finish();
      throw error;
    }
  }

  /** What a request is told that was waited with for an instance in vain. */
  unavailable(request: InvocationRequest): AwsError {
    const text = `The container is not in service: ${this.#instance.lastFailure}`;
    return this.#refused(request, containerError(503, text, this.#place));
  }

  #refused(request: InvocationRequest, error: AwsError): AwsError {
    this.#record(request, { ...noOutcome(request), status: 503 });
    return error;
  }

  async #lease(agent: ModelAgent, request: InvocationRequest, outcome: Outcome): Promise<ModelLease> {
    try {
      const lease = await agent.acquire(request.targetModel ?? "", request.signal);
      outcome.cacheHit = lease.cacheHit;
      outcome.waitedUs = lease.waitedUs;
      return lease;
    } catch (error) {
      throw modelErrorOf(error, this.#options.plan.model.container.ModelDataUrl ?? "", this.#place);
    }
  }

  async #send(
    request: InvocationRequest,
    leases: ModelLease[],
    outcome: Outcome,
    finish: () => void,
  ): Promise<InvocationReply> {
    const { invocationLimits, clock } = this.#options.fleet;
    const aborter = new AbortController();
    const leave = () => aborter.abort(request.signal.reason);
    request.signal.addEventListener("abort", leave, { once: true });
    const timer = clock.timer(invocationLimits.answerMsMax, () => aborter.abort(new AnswerTimeout()));
    let sentNs = clock.monotonicNs();
    const end = () => {
      outcome.modelNs = clock.monotonicNs() - sentNs;
      request.signal.removeEventListener("abort", leave);
      timer[Symbol.dispose]();
    };
    try {
      const body = await request.body();
      sentNs = clock.monotonicNs();
      const reply = await this.#exchange(request, leases, { headers: request.headers, body, signal: aborter.signal });
      outcome.status = reply.status;
      if (reply.status < 200 || reply.status > 299) {
        throw containerError(reply.status, await errorText(reply.body), this.#place);
      }
      const received = await this.#receive(reply, invocationLimits.responseBytesMax, request.memory);
      const { variantName } = this;
      const text = (name: string) => {
        const value = reply.headers[name];
        return typeof value === "string" ? value : null;
      };
      const done = () => {
        end();
        finish();
      };
      if (Buffer.isBuffer(received)) end();
      return {
        contentType: text("content-type"),
        customAttributes: text("x-amzn-sagemaker-custom-attributes"),
        variantName,
        body: received,
        byteLength: Buffer.isBuffer(received) ? received.length : Number(text("content-length")),
        done,
      };
    } catch (error) {
      end();
      throw this.#invocationError(error, outcome, { client: request.signal, exchange: aborter.signal });
    }
  }

  get variantName(): string {
    return this.#options.plan.variant.VariantName;
  }

  #invocationError(
    error: unknown,
    outcome: Outcome,
    signals: { readonly client: AbortSignal; readonly exchange: AbortSignal },
  ): unknown {
    if (error instanceof AwsError) return error;
    if (signals.client.aborted) return signals.client.reason;
    const isLate = signals.exchange.reason instanceof AnswerTimeout;
    outcome.status = isLate ? 504 : 503;
    if (isLate) return containerError(0, timeoutText, this.#place);
    const text = error instanceof Error ? error.message : String(error);
    return containerError(503, `The container did not answer: ${text}`, this.#place);
  }

  /**
   * A refused connection was never a request: it is made again, once, to the container's successor. Anything that broke later
   * is told to the client, because the model may have acted on it.
   */
  async #post(path: string, exchange: Exchange): Promise<ContainerReply> {
    const { headers, body, signal } = exchange;
    const limit = () => AbortSignal.any([signal, AbortSignal.timeout(this.#restartWaitMsMax)]);
    const { client } = this.#instance;
    const trusted = client === null || client.isSuspect ? await this.#trustedClient(limit()) : client;
    try {
      return await trusted.invoke({ path, headers: { ...headers }, body, signal });
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if ((code !== "ECONNREFUSED" && code !== "ENOENT") || !Buffer.isBuffer(body)) throw error;
      const successor = await this.#instance.successor(trusted, limit()).catch(() => {
        throw error;
      });
      return await successor.invoke({ path, headers: { ...headers }, body, signal });
    }
  }

  get #restartWaitMsMax(): number {
    return this.#options.fleet.invocationLimits.restartWaitMsMax;
  }

  /**
   * The container's connections; after one broke, only when it answers a ping: a container that is dying still has its socket, and
   * a request queued there would be lost with it.
   */
  async #trustedClient(limit: AbortSignal): Promise<ContainerClient> {
    for (;;) {
      const client = await this.#instance.ready(limit);
      if (client.isSuspect) await client.ping(limit);
      if (!client.isSuspect) return client;
      await delay(this.#options.fleet.clock, suspectPingIntervalMs, limit);
    }
  }

  /** One exchange, and a second one for a model the container lost (404) or could not run for want of memory (507). */
  async #exchange(request: InvocationRequest, leases: ModelLease[], exchange: Exchange): Promise<ContainerReply> {
    const [lease] = leases;
    if (lease === undefined || this.#agent === null) return await this.#post("/invocations", exchange);
    const path = `/models/${lease.id}/invoke`;
    const reply = await this.#post(path, exchange);
    if (!Buffer.isBuffer(exchange.body) || (reply.status !== 404 && reply.status !== 507)) return reply;
    const text = await errorText(reply.body);
    if (reply.status === 507) {
      if (!(await this.#agent.makeRoom())) throw containerError(507, text, this.#place);
      return await this.#post(path, exchange);
    }
    // An empty 404 is the contract's "not loaded"; one with a text is the model's own answer.
    if (text !== "") throw containerError(404, text, this.#place);
    this.#agent.forget(lease.id);
    const again = await this.#agent.acquire(request.targetModel ?? "", request.signal);
    leases.push(again);
    return await this.#post(`/models/${again.id}/invoke`, exchange);
  }

  /** Whole, up to a bound; a longer answer of known length streams. */
  async #receive(reply: ContainerReply, bytesMax: number, memory: ByteLease): Promise<Buffer | Readable> {
    const stated = reply.headers["content-length"];
    const length = typeof stated === "string" ? Number(stated) : null;
    if (length !== null && length > bytesMax) {
      reply.body.destroy();
      throw tooLong(bytesMax);
    }
    if (length !== null && length > heldBytesMax) return reply.body;
    try {
      if (length !== null) takeForCall(memory, length);
      const take = length === null ? (bytes: number) => takeForCall(memory, bytes) : null;
      return await readWhole(reply.body, bytesMax, () => tooLong(bytesMax), take);
    } catch (error) {
      reply.body.destroy();
      throw error;
    }
  }

  #record(request: InvocationRequest, outcome: Outcome): void {
    const { metrics, fleet } = this.#options;
    const totalNs = fleet.clock.monotonicNs() - request.receivedNs;
    const isClientError = outcome.status >= 400 && outcome.status < 500;
    const isServerError = outcome.status >= 500;
    metrics.record("Invocations", 1);
    metrics.record("Invocation4XXErrors", isClientError ? 1 : 0);
    metrics.record("Invocation5XXErrors", isServerError ? 1 : 0);
    metrics.record("InvocationModelErrors", outcome.status >= 200 && outcome.status < 300 ? 0 : 1);
    if (outcome.modelNs > 0) {
      metrics.record("ModelLatency", outcome.modelNs / 1000);
      metrics.record("OverheadLatency", Math.max(0, totalNs - outcome.modelNs) / 1000);
    }
    if (outcome.cacheHit === null || outcome.target === null) return;
    metrics.recordMultiModel("ModelCacheHit", outcome.cacheHit ? 1 : 0);
    if (!outcome.cacheHit) metrics.recordMultiModel("ModelLoadingWaitTime", outcome.waitedUs);
    metrics.recordModel(outcome.target, "Invocations", 1);
    metrics.recordModel(outcome.target, "ModelCacheHit", outcome.cacheHit ? 1 : 0);
    metrics.recordModel(outcome.target, "ModelLatency", outcome.modelNs / 1000);
  }

  get #mlRoot(): string {
    return join(this.#directory, "ml");
  }

  async #prepare(signal: AbortSignal): Promise<void> {
    const { plan, fleet } = this.#options;
    await rm(this.#directory, { recursive: true, force: true });
    if (this.#agent !== null) return await this.#prepareMany(this.#agent);
    await mkdir(join(this.#mlRoot, "models"), { recursive: true });
    const seconds = plan.variant.ModelDataDownloadTimeoutInSeconds ?? 1800;
    await downloadModelData(plan.model.container, join(this.#mlRoot, "model"), {
      store: fleet.store,
      unpacker: fleet.unpacker,
      containerName: plan.model.container.ContainerHostname ?? "container_1",
      signal: AbortSignal.any([signal, AbortSignal.timeout(seconds * 1000)]),
    });
  }

  async #prepareMany(agent: ModelAgent): Promise<void> {
    const { plan, fleet, place } = this.#options;
    const owner = {
      endpointName: place.endpointName,
      variantName: plan.variant.VariantName,
      modelDataUrl: plan.model.container.ModelDataUrl ?? "",
    };
    const hasLeft = await fleet.leftInstances.take(owner, this.#directory);
    await mkdir(join(this.#mlRoot, "models"), { recursive: true });
    await writeOwner(this.#directory, owner);
    fleet.unpacker.prepare();
    if (hasLeft) await agent.adopt();
  }

  #openAgent(): ModelAgent {
    const { fleet, plan, metrics, modelDiskBytes, modelMemoryBytes } = this.#options;
    return new ModelAgent({
      modelsDirectory: join(this.#mlRoot, "models"),
      descriptionsDirectory: join(this.#directory, "trees"),
      limits: { ...agentLimits, diskBytesMax: modelDiskBytes, memoryBytesMax: modelMemoryBytes },
      source: createModelSource(plan.model.container.ModelDataUrl ?? "", fleet),
      container: (signal) => this.#trustedClient(signal),
      observer: {
        downloaded: (_target, durationUs) => metrics.recordMultiModel("ModelDownloadingTime", durationUs),
        loaded: (target, durationUs) => {
          metrics.recordMultiModel("ModelLoadingTime", durationUs);
          metrics.recordModel(target, "ModelLoadingTime", durationUs);
        },
        unloaded: (_target, durationUs) => metrics.recordMultiModel("ModelUnloadingTime", durationUs),
        loadedCountChanged: () => metrics.recordInstance("LoadedModelCount", this.loadedCount),
      },
      clock: fleet.clock,
      logger: fleet.logger,
    });
  }
}

class AnswerTimeout extends Error {}

/** The model's own variables, then what the platform sets; the platform's win. */
