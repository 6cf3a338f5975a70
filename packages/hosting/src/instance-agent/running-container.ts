import { Readable } from "node:stream";
import { openDeadline, type Clock, type Logger } from "@galatea/base";
import {
  ModelCache,
  ModelLoadError,
  ModelMissingError,
  ModelNotReadyError,
  type ModelCacheLease,
  type UnpackedModels,
} from "../model-cache/index.ts";
import type { NodeDescription, NodeMemory } from "../nodes/index.ts";
import {
  readErrorText,
  InstanceContainer,
  InstanceFailure,
  ResponseRejected,
  type ContainerClient,
  type ContainerReply,
  type ContainerSlot,
  type InstanceUsage,
  type BufferedReply,
} from "../instances/index.ts";
import { ContainerConnectionLost, ContainerTimeout, RequestNotSent, UnknownInstance } from "./agent-errors.ts";
import type { ContainerHealth, InstanceEvent, ListedContainer } from "./agent-events.ts";
import type { AgentContainerSpec, AgentInstanceSpec, ModelCacheSpec } from "./agent-spec.ts";
import type {
  AcquiredModel,
  AgentContainer,
  AgentReply,
  AgentRequest,
  BufferedAgentRequest,
} from "./instance-agent.ts";
import type { ContainerView } from "./instance-view.ts";

/** Dependencies that all containers of an agent share. */
export interface ContainerDependencies {
  readonly node: NodeDescription;
  /** Memory of the node, which all model caches on the node share. */
  readonly memory: NodeMemory;
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface RunningContainerOptions extends ContainerDependencies {
  readonly instance: AgentInstanceSpec;
  readonly spec: AgentContainerSpec;
  /** Index of the container in the instance, from 0. */
  readonly position: number;
  readonly slot: ContainerSlot;
  readonly emit: (event: InstanceEvent) => void;
}

/**
 * One container of an instance on this node. Keeps the container in service, sends requests to it, and manages the
 * model cache of a multi-model container.
 */
export class RunningContainer implements AsyncDisposable {
  readonly container: InstanceContainer;
  readonly models: ModelCache | null;
  readonly #options: RunningContainerOptions;
  readonly #adopted = Promise.withResolvers<void>();
  #isDraining = false;

  constructor(options: RunningContainerOptions) {
    this.#options = options;
    const { instance, spec, slot, clock, logger } = options;
    this.container = new InstanceContainer({
      id: instance.id,
      name: spec.name,
      slot,
      limits: instance.limits,
      clock,
      logger,
      prepare: async (signal) => {
        await slot.prepare(signal);
        await this.models?.adopt([]);
        this.#adopted.resolve();
      },
      takeOver: async (client, signal) => {
        if (this.models !== null) await this.models.adopt(await client.models(signal));
        this.#adopted.resolve();
      },
      onLost: () => this.models?.containerLost(),
      onChanged: () => this.#reportHealth(),
    });
    const { trees } = slot;
    this.models = trees === null || spec.cache === null ? null : this.#openModels(trees, spec.cache);
  }

  get name(): string {
    return this.#options.spec.name;
  }

  get listed(): ListedContainer {
    const { models } = this;
    return { health: this.#health, models: models?.states() ?? [], memory: models?.memory ?? null };
  }

  /** Sends a request to a single-model container. */
  async invoke(request: AgentRequest): Promise<AgentReply> {
    return await this.post(request.containerPath ?? "/invocations", request);
  }

  /**
   * Sends a request to a single-model container and buffers the response. A request that was not sent is repeated once,
   * as in `post`.
   */
  async invokeBuffered(request: BufferedAgentRequest): Promise<BufferedReply> {
    const { signal } = request;
    const send = (to: ContainerClient) => to.invokeBuffered({ ...request, path: "/invocations" });
    try {
      const client = this.#healthyClient ?? (await this.#waitForClient(signal));
      return await this.#withSuccessor({ client, mayRepeat: true, signal }, send);
    } catch (error) {
      throw toConnectionError(error, signal);
    }
  }

  /**
   * Sends a request to a healthy container. A request that was not sent is repeated once. If another instance can
   * process it, the caller repeats it there after RequestNotSent. Otherwise, it is repeated here, on the same container
   * if that responds to pings, or on the restarted one. A request whose connection broke after it was sent is not
   * repeated, because the model may have processed it.
   */
  async post(
    path: string,
    { headers, body, signal, mayGoElsewhere, isStreamed }: AgentRequest,
  ): Promise<ContainerReply> {
    const healthy = this.#healthyClient;
    if ((healthy === null || this.#isDraining) && mayGoElsewhere) throw new RequestNotSent();
    try {
      const client = healthy ?? (await this.#waitForClient(signal));
      const sent = { path, headers, body, isStreamed, signal };
      const mayRepeat = Buffer.isBuffer(body);
      if (!mayGoElsewhere || !mayRepeat) {
        return await this.#withSuccessor({ client, mayRepeat, signal }, (to) => to.invoke(sent));
      }
      try {
        return await client.invoke(sent);
      } catch (error) {
        if (client.wasNotSent(error)) throw new RequestNotSent({ cause: error });
        throw error;
      }
    } catch (error) {
      throw toConnectionError(error, signal);
    }
  }

  /** Asks the container whether it has loaded a model. */
  async hasModel(id: string, signal: AbortSignal): Promise<boolean> {
    try {
      const client = this.#healthyClient ?? (await this.#waitForClient(signal));
      return await client.hasModel(id, signal);
    } catch (error) {
      throw toConnectionError(error, signal);
    }
  }

  /**
   * Resolves when the models that a previous run has left in the container and on the disk are known. Rejects with
   * InstanceFailure while starts keep failing. Without this wait, such a model would be loaded again.
   */
  async adopted(signal: AbortSignal): Promise<void> {
    await Promise.race([this.#adopted.promise, this.container.ready(signal)]);
  }

  /** Reports the container as unhealthy from now on, so that other instances get its requests. */
  drain(): void {
    this.#isDraining = true;
    this.#reportHealth();
  }

  async usage(): Promise<InstanceUsage | null> {
    return await this.container.usage();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.models?.[Symbol.asyncDispose]();
    await this.container[Symbol.asyncDispose]();
  }

  get #healthyClient(): ContainerClient | null {
    const { client } = this.container;
    return client === null || client.isUnhealthy ? null : client;
  }

  async #waitForClient(signal: AbortSignal): Promise<ContainerClient> {
    return await this.#waitForRestart(signal, (limit) => this.container.healthyClient(limit));
  }

  async #withSuccessor<Reply>(
    call: { readonly client: ContainerClient; readonly mayRepeat: boolean; readonly signal: AbortSignal },
    send: (client: ContainerClient) => Promise<Reply>,
    isSecond = false,
  ): Promise<Reply> {
    const { client, mayRepeat, signal } = call;
    try {
      return await send(client);
    } catch (error) {
      if (!mayRepeat || !client.wasNotSent(error)) throw error;
      const wait = (limit: AbortSignal) =>
        isSecond ? this.container.successor(client, limit) : this.container.healthyClient(limit);
      const next = await this.#waitForRestart(signal, wait);
      // The container is running, and only closed an idle connection. The request is sent again on another connection.
      return next === client ? await this.#withSuccessor(call, send, true) : await send(next);
    }
  }

  /** Waits up to `restartWaitMsMax` for a restarting container. Rejects with ContainerTimeout after that. */
  async #waitForRestart<Value>(signal: AbortSignal, wait: (limit: AbortSignal) => Promise<Value>): Promise<Value> {
    const { clock, instance } = this.#options;
    const afterMs = instance.restartWaitMsMax;
    using limit = openDeadline({ clock, afterMs, signal, createError: () => new ContainerTimeout() });
    return await wait(limit.signal);
  }

  get #health(): ContainerHealth {
    const { state, client, lastFailure: failure, lastLines, isFailing } = this.container;
    return {
      at: state.at,
      failure,
      lastLines,
      isFailing,
      isUnhealthy: this.#isDraining || (client?.isUnhealthy ?? false),
      isDraining: this.#isDraining,
      unconfined: client?.unconfined ?? null,
    };
  }

  #reportHealth(): void {
    const { position, emit } = this.#options;
    emit({ kind: "health", position, health: this.#health });
  }

  #openModels(trees: UnpackedModels, { limits, guaranteedBytes }: ModelCacheSpec): ModelCache {
    const { position, memory, clock, logger, emit } = this.#options;
    const timed = (what: "downloaded" | "loaded" | "unloaded") => (target: string, durationUs: number) =>
      emit({ kind: "model-timed", position, what, target, durationUs });
    return new ModelCache({
      trees,
      limits,
      container: (signal) => this.container.healthyClient(signal),
      observer: {
        downloaded: timed("downloaded"),
        loaded: timed("loaded"),
        unloaded: timed("unloaded"),
        changed: (model) => emit({ kind: "model", position, model }),
        used: (id, pinCount, usedNs) => emit({ kind: "model-used", position, id, pinCount, usedNs }),
        outdated: (target) => emit({ kind: "outdated", position, target }),
      },
      joinMemory: (holder) => memory.addCache(holder, guaranteedBytes),
      clock,
      logger,
    });
  }
}

/** The client of a container that runs in the agent's own process. */
export class LocalContainer implements AgentContainer {
  readonly view: ContainerView;
  /** Null before `put` or `attach`. */
  running: RunningContainer | null = null;

  constructor(view: ContainerView) {
    this.view = view;
  }

  get name(): string {
    return this.view.name;
  }

  async invoke(request: AgentRequest): Promise<AgentReply> {
    return await this.#started.invoke(request);
  }

  async invokeBuffered(request: BufferedAgentRequest): Promise<BufferedReply> {
    return await this.#started.invokeBuffered(request);
  }

  async executionParameters(signal: AbortSignal): Promise<string | null> {
    return await (await this.#started.container.ready(signal)).executionParameters(signal);
  }

  async acquire(target: string, signal: AbortSignal): Promise<AcquiredModel> {
    const running = this.#started;
    const { models } = running;
    if (models === null || this.view.models === null) throw new UnknownInstance(`container ${this.name} with models`);
    const demand = this.view.models.demand.begin(target);
    try {
      await running.adopted(signal);
      const lease = await models.acquire(target, signal);
      return new LocalModelLease(running, { models, target, lease, demand });
    } catch (error) {
      demand[Symbol.dispose]();
      throw error;
    }
  }

  release(id: string): void {
    this.running?.models?.release(id);
  }

  recheck(target: string): void {
    this.running?.models?.recheck(target);
  }

  get #started(): RunningContainer {
    if (this.running !== null) return this.running;
    throw new InstanceFailure("it has not been started yet", { containerName: this.name, lastLines: [] });
  }
}

/** A lease of a model that a container of this process has loaded. */
class LocalModelLease implements AcquiredModel {
  readonly cacheHit: boolean;
  readonly waitedUs: number;
  readonly #running: RunningContainer;
  readonly #models: ModelCache;
  readonly #target: string;
  readonly #demand: Disposable;
  /** Leases of the model cache: the first one, and another one for each time that the container had lost the model. */
  readonly #leases: ModelCacheLease[];

  constructor(
    running: RunningContainer,
    of: {
      readonly models: ModelCache;
      readonly target: string;
      readonly lease: ModelCacheLease;
      readonly demand: Disposable;
    },
  ) {
    this.#running = running;
    this.#models = of.models;
    this.#target = of.target;
    this.#demand = of.demand;
    this.#leases = [of.lease];
    this.cacheHit = of.lease.cacheHit;
    this.waitedUs = of.lease.waitedUs;
  }

  /**
   * Sends a request. If the container has lost the model, loads the model and sends the request again. After a status
   * 507, unloads an idle model and sends the request again.
   */
  async invoke(request: AgentRequest): Promise<AgentReply> {
    const models = this.#models;
    const path = this.#path(request);
    const reply = await this.#running.post(path, request);
    if (reply.status !== 404 && reply.status !== 507) return reply;
    const isBuffered = Buffer.isBuffer(request.body);
    const text = await readErrorText(reply.body);
    const unchanged = { ...reply, body: Readable.from([Buffer.from(text)]) };
    if (reply.status === 507) {
      if (!isBuffered || !(await models.evictIdleModel())) return unchanged;
      return await this.#running.post(path, request);
    }
    // In the container contract, status 404 means that the model is not loaded. A model may also respond with 404
    // itself, and must then not compute again. The response body does not distinguish the two cases, but `GET
    // /models/{id}` does for every container.
    if (await this.#running.hasModel(this.#id, request.signal)) return unchanged;
    models.forget(this.#id);
    if (!isBuffered) return unchanged;
    this.#leases.push(await models.acquire(this.#target, request.signal));
    return await this.#running.post(this.#path(request), request);
  }

  [Symbol.dispose](): void {
    this.#demand[Symbol.dispose]();
    for (const lease of this.#leases) lease[Symbol.dispose]();
  }

  get #id(): string {
    return this.#leases.at(-1)?.id ?? "";
  }

  #path({ containerPath = "/invoke" }: AgentRequest): string {
    return `/models/${this.#id}${containerPath}`;
  }
}

const contractErrors = [
  ContainerConnectionLost,
  InstanceFailure,
  ModelLoadError,
  ModelMissingError,
  ModelNotReadyError,
  ResponseRejected,
  RequestNotSent,
];

/**
 * Converts an error of the connection to ContainerConnectionLost. Returns errors of the agent's interface unchanged.
 */
function toConnectionError(error: unknown, signal: AbortSignal): unknown {
  if (signal.aborted || contractErrors.some((kind) => error instanceof kind)) return error;
  return new ContainerConnectionLost(error instanceof Error ? error.message : String(error), { cause: error });
}
