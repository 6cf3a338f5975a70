import { assert, ChangeNotifier, TaskGroup } from "@galatea/base";
import type { HostedInstance, InstanceUsage, ModelHost } from "../instances/index.ts";
import { ContainerConnectionLost } from "./agent-errors.ts";
import type { AgentEvent, InstanceEvent, ListedInstance, LostEvents } from "./agent-events.ts";
import type { AgentInstanceSpec, OnStartFailure } from "./agent-spec.ts";
import { EventLog, eventLogLimits, type EventLogLimits } from "./event-log.ts";
import type { AgentInstance, AgentState, EventReadOptions, InstanceAgent } from "./instance-agent.ts";
import { InstanceView } from "./instance-view.ts";
import { LocalContainer, RunningContainer, type ContainerDependencies } from "./running-container.ts";

export interface LocalAgentOptions extends ContainerDependencies {
  readonly host: ModelHost;
  readonly events?: EventLogLimits;
}

/** An instance that is running, starting or stopping. */
interface Entry {
  readonly running: RunningInstance;
  readonly clients: Set<LocalInstance>;
  /** Resolves when the instance has been removed; null if it is not being stopped. */
  ending: Promise<void> | null;
}

/**
 * The agent of the node on which this process runs. Disposal stops instances whose first start has not completed. Other
 * instances keep running; the host stops or detaches them.
 */
export class LocalInstanceAgent implements InstanceAgent {
  readonly #options: LocalAgentOptions;
  readonly #entries = new Map<string, Entry>();
  readonly #log: EventLog;
  readonly #tasks: TaskGroup;
  /** The memory that was last reported for each container. */
  readonly #reportedMemory = new Map<
    RunningContainer,
    { readonly usedBytes: number; readonly capacityBytes: number }
  >();
  #isMemoryReportQueued = false;
  #isDraining = false;
  readonly #removed = new ChangeNotifier();

  constructor(options: LocalAgentOptions) {
    this.#options = options;
    this.#log = new EventLog(options.events ?? eventLogLimits, options.clock.epochMs());
    this.#tasks = new TaskGroup((error) => {
      options.logger.error("a task that starts or ends an instance failed with an unexpected error", {
        error: String(error),
      });
    });
  }

  instance(spec: AgentInstanceSpec, onEvent: (event: InstanceEvent) => void): LocalInstance {
    return new LocalInstance(this, spec, onEvent);
  }

  /** Implements `AgentInstance.put`. Called by `LocalInstance`. */
  async put(client: LocalInstance, onStartFailure: OnStartFailure): Promise<boolean> {
    const { spec } = client;
    for (;;) {
      const entry = this.#entries.get(spec.id);
      if (entry === undefined) {
        if (this.#isDraining) throw new ContainerConnectionLost("the instance agent is shutting down");
        this.#open(client, onStartFailure);
        return false;
      }
      if (this.attach(client)) return true;
      await entry.ending;
    }
  }

  /** Implements `AgentInstance.attach`. Called by `LocalInstance`. */
  attach(client: LocalInstance): boolean {
    const entry = this.#entries.get(client.id);
    if (entry === undefined || entry.ending !== null) return false;
    client.attached(entry.running);
    entry.clients.add(client);
    return true;
  }

  /** Stops and removes an instance. Resolves after the removal, with whether the agent ran the instance. */
  async end(id: string, how: "delete" | "shutDown"): Promise<boolean> {
    const entry = this.#entries.get(id);
    if (entry === undefined) return false;
    await this.#end(entry, how, null);
    return true;
  }

  state(): Promise<AgentState> {
    const { node } = this.#options;
    const instances = [...this.#entries.values()].map(({ running }) => running.listed);
    return Promise.resolve({ seq: this.#log.seq, node, instances });
  }

  /** Bytes of node memory that the agent's instances reserve. */
  get reservedBytes(): number {
    return this.#entries.values().reduce((sum, { running }) => sum + running.spec.reservedBytes, 0);
  }

  /** True if the agent runs no instance. */
  get isEmpty(): boolean {
    return this.#entries.size === 0;
  }

  /** Resolves when an instance has been removed. */
  removed(): Promise<void> {
    return this.#removed.nextChange();
  }

  /** True if the agent has instances, and all their containers are in service. */
  get isServing(): boolean {
    const entries = [...this.#entries.values()];
    const serves = ({ running, ending }: Entry) =>
      ending === null && running.containers.every(({ container }) => container.state.at === "in-service");
    return entries.length > 0 && entries.every(serves);
  }

  /**
   * Prepares a shutdown of the agent. The agent rejects new instances and reports its containers as draining and
   * unhealthy, so that platforms replace its instances and requests go to others. If there are none, these containers
   * still respond.
   */
  drain(): void {
    this.#isDraining = true;
    for (const { running } of this.#entries.values()) for (const container of running.containers) container.drain();
  }

  /** Stops all instances. Resolves when they have been removed. */
  async endAll(): Promise<void> {
    await Promise.all([...this.#entries.keys()].map((id) => this.end(id, "delete")));
  }

  events(options: EventReadOptions): AsyncGenerator<AgentEvent | LostEvents, void> {
    return this.#log.read(options);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tasks[Symbol.asyncDispose]();
  }

  #open(client: LocalInstance, onStartFailure: OnStartFailure): void {
    const { spec } = client;
    const clients = new Set([client]);
    const emit = (event: InstanceEvent) => {
      this.#log.append(spec.id, event);
      for (const each of clients) each.apply(event);
      if (event.kind === "model") this.#memoryChanged();
    };
    const entry: Entry = { running: new RunningInstance({ ...this.#options, spec, emit }), clients, ending: null };
    this.#entries.set(spec.id, entry);
    client.attached(entry.running);
    this.#memoryChanged();
    this.#tasks.run(async (closing) => {
      const failure = await entry.running.start(onStartFailure, closing);
      const how = closing.aborted ? "shutDown" : "delete";
      if (failure !== null && entry.ending === null) await this.#end(entry, how, failure);
    });
  }

  #end(entry: Entry, how: "delete" | "shutDown", error: Error | null): Promise<void> {
    const { running, clients } = entry;
    entry.ending ??= running.end(how).finally(() => {
      this.#entries.delete(running.spec.id);
      for (const container of running.containers) this.#reportedMemory.delete(container);
      const event = { kind: "ended", error } as const;
      this.#log.append(running.spec.id, event);
      for (const client of clients) client.apply(event);
      this.#memoryChanged();
      this.#removed.notify();
    });
    return entry.ending;
  }

  /**
   * Reports the memory of all containers, because a model of one container reduces the capacity of the others. Changes
   * in one tick are reported once.
   */
  #memoryChanged(): void {
    if (this.#isMemoryReportQueued) return;
    this.#isMemoryReportQueued = true;
    queueMicrotask(() => {
      this.#isMemoryReportQueued = false;
      for (const { running, clients, ending } of this.#entries.values()) {
        if (ending !== null) continue;
        for (const position of running.containers.keys()) this.#reportMemory(running, position, clients);
      }
    });
  }

  #reportMemory({ spec, containers }: RunningInstance, position: number, clients: ReadonlySet<LocalInstance>): void {
    const container = containers[position];
    const memory = container?.models?.memory;
    if (container === undefined || memory === undefined) return;
    const reported = this.#reportedMemory.get(container);
    if (reported?.usedBytes === memory.usedBytes && reported.capacityBytes === memory.capacityBytes) return;
    this.#reportedMemory.set(container, memory);
    const event = { kind: "memory", position, memory } as const;
    this.#log.append(spec.id, event);
    for (const client of clients) client.apply(event);
  }
}

interface RunningInstanceOptions extends ContainerDependencies {
  readonly host: ModelHost;
  readonly spec: AgentInstanceSpec;
  readonly emit: (event: InstanceEvent) => void;
}

/** An instance that this process runs. */
class RunningInstance {
  readonly spec: AgentInstanceSpec;
  readonly containers: readonly RunningContainer[];
  readonly #hosted: HostedInstance;
  readonly #starting = new AbortController();
  #starts: Promise<unknown> = Promise.resolve();

  constructor(options: RunningInstanceOptions) {
    const { host, node, spec, emit } = options;
    this.spec = spec;
    const [first, ...more] = spec.containers.map((container, position) => {
      return { ...container, output: (text: string) => emit({ kind: "line", position, text }) };
    });
    assert(first !== undefined, "an instance has one container at least");
    this.#hosted = host.open({
      instanceId: spec.id,
      owner: spec.owner,
      node: node.id,
      budget: spec.budget,
      containers: [first, ...more],
    });
    this.containers = spec.containers.map((container, position) => {
      const slot = this.#hosted.slots[position];
      assert(slot !== undefined, "an instance has a slot for each of its containers");
      return new RunningContainer({ ...options, instance: spec, spec: container, position, slot });
    });
  }

  get listed(): ListedInstance {
    return { spec: this.spec, containers: this.containers.map((container) => container.listed) };
  }

  /**
   * Starts all containers. Resolves with null when they are in service, or with the first failure. With `retry`,
   * resolves with null immediately.
   */
  async start(onStartFailure: OnStartFailure, closing: AbortSignal): Promise<Error | null> {
    if (onStartFailure === "retry") {
      for (const { container } of this.containers) container.resume();
      return null;
    }
    const { signal } = this.#starting;
    const either = AbortSignal.any([signal, closing]);
    const starts = this.containers.map(({ container }) => container.start(either));
    // The first failure cancels the other starts.
    for (const start of starts) start.catch((error: unknown) => this.#starting.abort(error));
    this.#starts = Promise.allSettled(starts);
    await this.#starts;
    if (!signal.aborted) return null;
    return signal.reason instanceof Error ? signal.reason : new Error(String(signal.reason));
  }

  async usages(): Promise<readonly (readonly [name: string, usage: InstanceUsage | null])[]> {
    return await Promise.all(
      this.containers.map(async (container) => [container.name, await container.usage()] as const),
    );
  }

  /**
   * Stops all containers. `shutDown` keeps unpacked models for the next run of the platform; `delete` removes all
   * files.
   */
  async end(how: "delete" | "shutDown"): Promise<void> {
    this.#starting.abort(new Error("the instance is stopped"));
    // Without this wait, a start in progress could write to directories that are being removed.
    await this.#starts;
    await Promise.all(this.containers.map((container) => container[Symbol.asyncDispose]()));
    await (how === "shutDown" ? this.#hosted.shutDown() : this.#hosted[Symbol.asyncDispose]());
  }
}

/** A client of an instance that runs in the agent's own process. */
class LocalInstance implements AgentInstance {
  readonly spec: AgentInstanceSpec;
  readonly view: InstanceView;
  readonly containers: readonly LocalContainer[];
  readonly #agent: LocalInstanceAgent;
  readonly #onEvent: (event: InstanceEvent) => void;
  #running: RunningInstance | null = null;

  constructor(agent: LocalInstanceAgent, spec: AgentInstanceSpec, onEvent: (event: InstanceEvent) => void) {
    this.#agent = agent;
    this.spec = spec;
    this.#onEvent = onEvent;
    this.view = new InstanceView(spec);
    this.containers = this.view.containers.map((view) => new LocalContainer(view));
  }

  get id(): string {
    return this.spec.id;
  }

  async put(onStartFailure: OnStartFailure): Promise<boolean> {
    return await this.#agent.put(this, onStartFailure);
  }

  async usages(): Promise<readonly (readonly [name: string, usage: InstanceUsage | null])[]> {
    return (await this.#running?.usages()) ?? this.containers.map(({ name }) => [name, null] as const);
  }

  async delete(): Promise<boolean> {
    return await this.#agent.end(this.id, "delete");
  }

  async discard(): Promise<void> {
    await this.delete();
  }

  async shutDown(): Promise<boolean> {
    return await this.#agent.end(this.id, "shutDown");
  }

  attach(): Promise<boolean> {
    return Promise.resolve(this.#agent.attach(this));
  }

  /** Sets the running instance. Called by the agent. */
  attached(running: RunningInstance): void {
    this.#running = running;
    for (const [index, container] of this.containers.entries()) container.running = running.containers[index] ?? null;
    this.view.restore(running.listed);
  }

  /** Applies an event. Called by the agent. */
  apply(event: InstanceEvent): void {
    this.view.apply(event);
    this.#onEvent(event);
  }
}
