import { randomUUID } from "node:crypto";
import { assert, AwsError, EventLoopQueue, type Clock } from "@galatea/base";
import type { Components } from "./operations/index.ts";
import { openComponents } from "./operations/index.ts";
import type { Documents } from "./records/index.ts";
import { asyncLimits, type AsyncLimits, type ResultOutbox } from "./async-inference/index.ts";
import { AsyncInferences } from "./operations/index.ts";
import {
  AgentAdoption,
  LocalInstanceAgent,
  type InstanceAgent,
  type InstanceHost,
  type InstanceOpener,
  type RemoteAgent,
} from "./instance-agent/index.ts";
import { HostingCatalog } from "./operations/index.ts";
import { nameKey } from "./definitions/index.ts";
import { EndpointActions, Reconciler, StateLog, TransformActions, type ReadAlarmState } from "./reconcilers/index.ts";
import { EndpointWatch } from "./operations/index.ts";
import type { WaitLimits } from "./waits/index.ts";
import { Endpoints } from "./operations/index.ts";
import type {
  EndpointEvent,
  EndpointRecord,
  EndpointState,
  FleetOptions,
  FleetDependencies,
} from "./endpoints/index.ts";
import type { InstanceCredentials, ModelHost, MissingIsolation } from "./instances/index.ts";
import { ModelMemoryEstimates } from "./capacity/index.ts";
import { Mirrors, type MirrorStatistics, type MirroringLimits } from "./mirrors/index.ts";
import {
  endpointNotFound,
  endpointStopped,
  type InvocationReply,
  type InvocationRequest,
} from "./invocations/index.ts";
import { DrainLimiter } from "./capacity/index.ts";
import { Reservations, type HostingLimits } from "./capacity/index.ts";
import type { NodeDescription, NodeId, Nodes } from "./nodes/index.ts";
import { JobMemory } from "./transforms/index.ts";
import { Transforms } from "./operations/index.ts";
import { HostingStore, type OutputOwners } from "./store/index.ts";
import { newInstanceId } from "./operations/index.ts";

export interface HostingOptions {
  readonly documents: Documents;
  readonly fleet: Omit<FleetOptions, "nodes" | "agentOf" | "host" | "replacesLost"> & {
    /** A `ModelHost` runs instances for agents in this process. An `InstanceHost` has agents elsewhere. */
    readonly host: ModelHost | InstanceHost;
  };
  /** Nodes on which instances run; at least one. */
  readonly nodes: readonly NodeDescription[];
  /** Agents on other machines, by node. Either all nodes have an agent, or none. Hosting disposes the agents. */
  readonly remoteAgents?: ReadonlyMap<NodeId, RemoteAgent>;
  readonly limits: HostingLimits;
  /** Returns a random number in [0, 1), with which requests are distributed over instances. */
  readonly random: () => number;
  readonly alarmState: ReadAlarmState;
  /** Outbox for SNS notifications of asynchronous results. Without an outbox, no notifications are sent. */
  readonly outbox?: ResultOutbox;
  readonly asyncLimits?: AsyncLimits;
  /** Clock for the timestamps of recorded metrics. Defaults to the fleet's clock. */
  readonly seriesClock?: Clock;
  readonly mirroring?: MirroringLimits;
}

/** Counts for the platform's metrics and its `/health` page. */
export interface HostingStatistics {
  readonly endpoints: ReadonlyMap<EndpointState["at"], number>;
  readonly instancesInServiceCount: number;
  /** Isolation settings that nodes cannot apply to the instances in service, with the reasons. */
  readonly unconfined: MissingIsolation;
}

/** Models, endpoint configurations and endpoints: their records, their reconcilers and their running instances. */
export class Hosting implements AsyncDisposable {
  readonly catalog: HostingCatalog;
  readonly endpoints: Endpoints;
  readonly components: Components;
  readonly transforms: Transforms;
  readonly asyncInferences: AsyncInferences;
  readonly watch: EndpointWatch;
  readonly #store: HostingStore;
  readonly #host: FleetOptions["host"];
  readonly #reconciler: Reconciler<EndpointRecord, EndpointEvent>;
  readonly #actions: EndpointActions;
  readonly #mirrors: Mirrors;
  readonly #stateLog: StateLog;
  readonly #memories: ModelMemoryEstimates;
  readonly #credentials: InstanceCredentials;
  readonly #agents: ReadonlyMap<NodeId, InstanceAgent>;

  private constructor(options: HostingOptions, store: HostingStore) {
    const { limits, random, alarmState } = options;
    const reservations = new Reservations({ store, nodes: options.nodes, limits });
    const { nodes } = reservations;
    this.#agents = openAgents(options, nodes);
    const fleet = fleetOptions(options, nodes, this.#agents);
    this.#host = fleet.host;
    this.#store = store;
    this.#credentials = fleet.credentials;
    this.watch = new EndpointWatch(store, fleet.clock);
    const { store: objects, clock, logger } = fleet;
    this.#memories = new ModelMemoryEstimates({ store, objects, logger });
    this.catalog = new HostingCatalog({ store, reservations, memories: this.#memories, clock });
    this.#mirrors = new Mirrors({
      ...fleet,
      requestBytesMax: fleet.requestMemory.bytesMax,
      random,
      newId: randomUUID,
      limits: options.mirroring ?? {},
    });
    const claim: FleetDependencies["claim"] = (what, instanceType) => reservations.claim(what, instanceType);
    const memorySeen: FleetDependencies["memorySeen"] = (model, mostBytes) =>
      this.#memories.recordMeasured(model, mostBytes);
    const dependencies: FleetDependencies = { fleet, random, newId: newInstanceId, claim, memorySeen };
    this.#actions = new EndpointActions({
      store,
      parts: { ...dependencies, mirrors: this.#mirrors },
      drainLimiter: new DrainLimiter(clock, limits),
      alarmState,
    });
    this.#stateLog = new StateLog({ clock, logger });
    const reconciling = { store, clock, logger, stateLog: this.#stateLog };
    this.#reconciler = new Reconciler(this.#actions, reconciling);
    this.asyncInferences = new AsyncInferences({
      store,
      fleet,
      limits: options.asyncLimits ?? asyncLimits,
      seriesClock: options.seriesClock ?? clock,
      running: (name) => this.#actions.running(name),
      allRunning: () => this.#actions.allRunning(),
      newId: randomUUID,
      outbox: options.outbox ?? null,
    });
    const records = { store, reservations, catalog: this.catalog };
    const { components, variants } = openComponents({
      ...records,
      reconciling,
      fleetDependencies: dependencies,
      drainLimiter: new DrainLimiter(clock, limits),
      alarmState,
      watch: this.watch,
      waitUntilStable: (name, wait) => this.waitUntilStable(name, wait),
      resize: (name, size, owner) => this.endpoints.resize(name, [size], owner),
    });
    this.components = components;
    this.endpoints = new Endpoints({
      ...records,
      reconciler: this.#reconciler,
      actions: this.#actions,
      components,
      variants,
      clock,
      alarmState,
      logger,
    });
    const jobs = { memory: new JobMemory(fleet.requestMemory), loopQueue: new EventLoopQueue() };
    const jobReconciler = new Reconciler(new TransformActions({ store, fleet, newInstanceId, ...jobs }), reconciling);
    this.transforms = new Transforms({ ...records, reconciler: jobReconciler, fleet, watch: this.watch });
  }

  /** Opens hosting and loads the records. Nothing runs before `resume` is called. */
  static async open(options: HostingOptions): Promise<Hosting> {
    return new Hosting(options, await HostingStore.open(options.documents, options.fleet));
  }

  /** Continues the work of the previous run: starts the endpoints in service and resumes unfinished transitions. */
  async resume(): Promise<void> {
    const desired = [...(await this.endpoints.adoptableOwners()), ...(await this.components.adoptableOwners())];
    await this.#credentials.keepOnly(await this.#host.resume(desired));
    await this.endpoints.resume();
    await this.asyncInferences.resume();
    await this.components.resume();
    await this.transforms.resume();
  }

  /** Returns true if an S3 object is data of an existing model, or of a deleted model that an endpoint still runs. */
  isModelData(object: { readonly bucket: string; readonly key: string }): boolean {
    return this.#store.view.isModelData(object);
  }

  /** Returns the owner of an output object: a capture, an asynchronous output or a transform result. Null for other objects. */
  outputOwners(object: { readonly bucket: string; readonly key: string }): OutputOwners | null {
    return this.#store.view.outputOwners(object);
  }

  /** True if models may use images other than those of the built-in containers. */
  get runsImages(): boolean {
    return this.#host.runsImages;
  }

  /** Counts of the requests that were copied for shadow variants and data capture. */
  get mirrorStatistics(): MirrorStatistics {
    return this.#mirrors.figures;
  }

  statistics(): HostingStatistics {
    const endpoints = new Map<EndpointState["at"], number>();
    for (const at of this.#store.view.endpointStates()) endpoints.set(at, (endpoints.get(at) ?? 0) + 1);
    let instancesInServiceCount = 0;
    const unconfined: Record<string, string> = {};
    for (const { fleets } of this.#actions.allRunning()) {
      for (const fleet of fleets) {
        instancesInServiceCount += fleet.inServiceCount;
        Object.assign(unconfined, fleet.unconfined);
      }
    }
    return { endpoints, instancesInServiceCount, unconfined };
  }

  /** Resolves when the endpoint is in a stable state or deleted, or when the wait ends. */
  waitUntilStable(name: string, wait: WaitLimits): Promise<void> {
    return this.watch.waitUntilStable(name, wait);
  }

  /** Returns true if an endpoint with this name exists, in any state. */
  hasEndpoint(name: string): boolean {
    return this.#store.view.endpointState(nameKey(name)) !== null;
  }

  /** Returns true if an endpoint with this name accepts requests. */
  isRunning(name: string): boolean {
    return this.#actions.running(name) !== undefined;
  }

  /** Invokes an endpoint. Throws AwsError with the error codes and messages of SageMaker Runtime. */
  async invoke(name: string, accountId: string, request: InvocationRequest): Promise<InvocationReply> {
    const running = this.#actions.running(name);
    if (running === undefined) throw this.#notServing(name, accountId);
    if (running.asyncInference !== null) {
      const text = `Endpoint ${name} of account ${accountId} is an asynchronous endpoint: use InvokeEndpointAsync.`;
      throw new AwsError("ValidationError", text);
    }
    const { inferenceComponent = null } = request;
    if (inferenceComponent !== null) return await this.components.invoke(name, inferenceComponent, request);
    return await running.invoke(request);
  }

  /**
   * Stops all instances. The records of endpoints are kept, so that `resume` of the next process starts the endpoints again.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.asyncInferences[Symbol.asyncDispose]();
    await Promise.all([
      this.#reconciler[Symbol.asyncDispose](),
      this.components[Symbol.asyncDispose](),
      this.transforms[Symbol.asyncDispose](),
    ]);
    await Promise.all([...this.#agents.values()].map((agent) => agent[Symbol.asyncDispose]()));
    this.#stateLog[Symbol.dispose]();
    await this.#memories[Symbol.asyncDispose]();
    await this.#mirrors[Symbol.asyncDispose]();
    await this.#store[Symbol.asyncDispose]();
  }

  #notServing(name: string, accountId: string): AwsError {
    const isStopped = this.#store.view.endpointState(nameKey(name)) === "OutOfService";
    return isStopped ? endpointStopped(name, accountId) : endpointNotFound(name, accountId);
  }
}

function fleetOptions(
  { fleet, remoteAgents }: HostingOptions,
  nodes: Nodes,
  agents: ReadonlyMap<NodeId, InstanceAgent>,
): FleetOptions {
  const host = remoteAgents === undefined ? fleet.host : new AgentAdoption(remoteAgents, fleet.host);
  const agentOf = (id: NodeId) => agentOn(agents, fleet, id);
  return { ...fleet, host, nodes, agentOf, replacesLost: remoteAgents !== undefined };
}

/**
 * Returns the agent of each node: an agent on another machine or in this process. Returns an empty map if an `InstanceHost` has
 * the agents.
 */
function openAgents(options: HostingOptions, nodes: Nodes): ReadonlyMap<NodeId, InstanceAgent> {
  const { fleet, nodes: described, remoteAgents } = options;
  if (remoteAgents !== undefined) {
    for (const [id, agent] of remoteAgents) agent.observeNode((node) => nodes.setCapacity(id, node?.capacity ?? null));
    return remoteAgents;
  }
  const { host } = fleet;
  if ("instance" in host) return new Map();
  return new Map(
    described.map((node) => {
      const memory = nodes.memoryOf(node.id);
      return [node.id, new LocalInstanceAgent({ ...fleet, host, node, memory })];
    }),
  );
}

function agentOn(
  agents: ReadonlyMap<NodeId, InstanceAgent>,
  { host }: HostingOptions["fleet"],
  id: NodeId,
): InstanceOpener {
  if ("instance" in host) return host;
  const agent = agents.get(id);
  assert(agent !== undefined, `node ${id} has an agent`);
  return agent;
}
