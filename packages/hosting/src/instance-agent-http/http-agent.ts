import { delay, ChangeNotifier, rejectOnAbort, TaskGroup, type Clock, type Logger } from "@galatea/base";
import {
  ContainerConnectionLost,
  type AgentEvent,
  type AgentInstanceSpec,
  type AgentState,
  type EventReadOptions,
  type InstanceEvent,
  type ListedInstance,
  type LostEvents,
  type RemoteAgent,
} from "../instance-agent/index.ts";
import type { NodeDescription } from "../nodes/index.ts";
import {
  AgentConnection,
  AgentConnectionLost,
  type AgentDestination,
  type AgentTlsOptions,
} from "./agent-connection.ts";
import { eventHeartbeatMs, eventFromLine, stateFromWire, type EventLine, type WireState } from "./agent-protocol.ts";
import type { AgentAddress } from "./agent-server.ts";
import { HttpInstance, type InstanceFollower } from "./http-instance.ts";
import { readJsonLines } from "./json-lines.ts";

export interface HttpAgentOptions {
  /** Null if the agent has no address until `moveTo` is called. */
  readonly address: AgentAddress | null;
  /** Null for an agent that listens on a Unix socket without a token. */
  readonly token: string | null;
  /** Null for an agent without TLS. */
  readonly trust: AgentTlsOptions | null;
  /** The epoch of the platform; null by default: no other platform can acquire its records. */
  readonly epoch?: number | null;
  readonly limits?: AgentClientLimits;
  /** True if a shutdown of the platform leaves instances that have an owner running, for the next run to adopt. */
  readonly leavesInstances?: boolean;
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface AgentClientLimits {
  readonly connectMsMax: number;
  /** Milliseconds without an event or a heartbeat after which the agent's instances count as unhealthy. */
  readonly silenceMsMax: number;
  /**
   * Milliseconds without an event or a heartbeat after which all requests in flight fail, even if the agent accepts
   * connections.
   */
  readonly stallMsMax: number;
  /**
   * Milliseconds without an event or a heartbeat after which the agent's instances are lost and replaced on other
   * nodes.
   */
  readonly awayMsMax: number;
}

export const agentClientLimits: AgentClientLimits = {
  connectMsMax: 500,
  silenceMsMax: 2 * eventHeartbeatMs,
  stallMsMax: 30_000,
  awayMsMax: Infinity,
};

const reconnectMsMin = 20;
const reconnectMsMax = 2000;

type NumberedLine = Exclude<EventLine, { readonly kind: "heartbeat" }>;

/**
 * A client of an agent on another node or in another process. One event stream updates the views of all its instances.
 * After `silenceMsMax` without an event, the instances are unhealthy. Requests in flight fail if the agent then accepts
 * no connection, or after `stallMsMax` even if it does. Otherwise, they would wait for ever for a machine that has
 * failed.
 */
export class HttpInstanceAgent implements RemoteAgent, InstanceFollower {
  readonly connection: AgentConnection;
  readonly #options: HttpAgentOptions;
  readonly #tasks: TaskGroup;
  /** Clients of instances, by instance id. Several clients may follow one instance. */
  readonly #followed = new Map<string, Set<HttpInstance>>();
  readonly #changed = new ChangeNotifier();
  readonly #limits: AgentClientLimits;
  #isConnected = false;
  #isReading = false;
  /** True after the requests that were in flight when the connection was lost have been aborted. */
  #hasAborted = false;
  /** Monotonic time of the last event or heartbeat, by this process's clock. */
  #lastLineNs = 0;
  #failure: unknown = null;
  #reading = new AbortController();
  #observeNode: (node: NodeDescription | null) => void = () => {};
  /** Ids of instances that were deleted while the agent did not respond. The agent must still delete them. */
  readonly #owedDeletions = new Set<string>();
  /**
   * True if the agent did not respond to `endLeft`. When it responds, all instances without a client are deleted: a
   * previous run left them.
   */
  #endsLeft = false;

  constructor(options: HttpAgentOptions) {
    this.#options = options;
    const { address, token, trust, epoch = null, logger, limits = agentClientLimits } = options;
    this.#limits = limits;
    this.connection = new AgentConnection({ address, token, trust, epoch, connectMsMax: limits.connectMsMax });
    this.#tasks = new TaskGroup((error) =>
      logger.error("failed to read the events of an instance agent; reading has stopped", { error: String(error) }),
    );
  }

  instance(spec: AgentInstanceSpec, onEvent: (event: InstanceEvent) => void): HttpInstance {
    return new HttpInstance(this, spec, onEvent);
  }

  get leavesInstances(): boolean {
    return this.#options.leavesInstances ?? false;
  }

  observeNode(observe: (node: NodeDescription | null) => void): void {
    this.#observeNode = observe;
  }

  /** Resolves with the agent's node when the agent responds. */
  async connect(signal: AbortSignal): Promise<NodeDescription> {
    this.watch();
    while (!this.#isConnected) await rejectOnAbort(this.#changed.nextChange(), signal);
    return (await this.state()).node;
  }

  /** The latest error of the connection; null while the agent responds. */
  get failure(): unknown {
    return this.#failure;
  }

  async endLeft(keeps: (instance: ListedInstance) => boolean): Promise<readonly ListedInstance[]> {
    this.watch();
    let instances: readonly ListedInstance[];
    try {
      ({ instances } = await this.state());
    } catch (error) {
      this.log("an instance agent does not respond; its instances are not adopted", error);
      this.#endsLeft = true;
      return [];
    }
    const kept = instances.filter(keeps);
    // The start of the platform does not wait for the deletions: a container with requests in flight takes seconds to end.
    for (const each of instances) if (!kept.includes(each)) this.#owedDeletions.add(each.spec.id);
    if (this.#owedDeletions.size > 0) this.#tasks.run(() => this.#deleteOwed());
    return kept;
  }

  /** Deletes an instance when the agent responds again. Called by `HttpInstance`. */
  oweDeletion(id: string): void {
    this.#owedDeletions.add(id);
  }

  async state(): Promise<AgentState> {
    const readTimeoutMs = this.#limits.stallMsMax;
    const state = await this.connection.json<WireState>({ method: "GET", path: "/state", readTimeoutMs });
    return stateFromWire(state, this.#options.clock.monotonicNs());
  }

  async *events({ after, signal }: EventReadOptions): AsyncGenerator<AgentEvent | LostEvents, void> {
    for await (const { line, clockOffsetNs } of this.#lines(after, signal)) {
      if (line.kind === "heartbeat") continue;
      if (line.kind === "lost") yield { kind: "lost", seq: line.seq };
      else yield { ...eventFromLine(line, clockOffsetNs), seq: line.seq, instanceId: line.instanceId };
    }
  }

  async follow(instance: HttpInstance): Promise<ListedInstance | null> {
    const { id } = instance.spec;
    const clients = this.#followed.get(id) ?? new Set();
    this.#followed.set(id, clients.add(instance));
    this.watch();
    const { signal } = this.#tasks;
    while (!this.#isConnected) {
      await rejectOnAbort(this.#changed.nextChange(), signal);
      if (!this.#isConnected && this.#failure !== null) throw this.#failure;
    }
    const { seq, instances } = await this.state();
    const listed = instances.find(({ spec }) => spec.id === id) ?? null;
    if (listed !== null) instance.restore(listed, seq);
    return listed;
  }

  watch(): void {
    if (this.#isReading) return;
    this.#isReading = true;
    this.#lastLineNs = this.#options.clock.monotonicNs();
    this.#tasks.run((closing) => this.#read(closing));
  }

  /**
   * Connects to the agent at another address, which replaces the current one. Requests in flight continue at the
   * previous address.
   */
  moveTo(destination: AgentDestination): void {
    this.connection.moveTo(destination);
    this.#reading.abort(new ContainerConnectionLost("the instance agent has another address now"));
    this.#reading = new AbortController();
    this.#isConnected = false;
  }

  unfollow(instance: HttpInstance): void {
    const clients = this.#followed.get(instance.id);
    clients?.delete(instance);
    if (clients?.size === 0) this.#followed.delete(instance.id);
  }

  log(text: string, error: unknown): void {
    this.#options.logger.warning(text, { error: String(error) });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tasks[Symbol.asyncDispose]();
    await this.connection[Symbol.asyncDispose]();
  }

  /** Reads events until disposal. Reconnects with backoff and continues after the last event. */
  async #read(closing: AbortSignal): Promise<void> {
    const { clock } = this.#options;
    let after: number | undefined;
    let waitMs = reconnectMsMin;
    for (;;) {
      const { signal: moved } = this.#reading;
      try {
        for await (const { line, clockOffsetNs } of this.#lines(after, closing)) {
          if (!this.#isConnected || line.kind === "lost") await this.#restoreAll();
          waitMs = reconnectMsMin;
          this.#lastLineNs = clock.monotonicNs();
          this.#hasAborted = false;
          if (line.kind === "heartbeat") continue;
          after = line.seq;
          if (line.kind !== "lost") this.#apply(line, clockOffsetNs);
        }
        throw new ContainerConnectionLost("the instance agent ended its events");
      } catch (error) {
        closing.throwIfAborted();
        // The agent at the new address may have the instances in service already.
        if (moved.aborted) continue;
        this.#lost(error);
      }
      await delay(clock, waitMs, closing);
      waitMs = Math.min(reconnectMsMax, 2 * waitMs);
    }
  }

  async *#lines(
    after: number | undefined,
    signal: AbortSignal,
  ): AsyncGenerator<{ readonly line: EventLine; readonly clockOffsetNs: number }, void> {
    const path = after === undefined ? "/events" : `/events?after=${after}`;
    const { clock } = this.#options;
    using silence = new SilenceTimer(clock, this.#limits.silenceMsMax);
    const ended = AbortSignal.any([signal, silence.signal, this.#reading.signal]);
    const { body } = await this.connection.send({ method: "GET", path, signal: ended });
    try {
      for await (const line of readJsonLines<EventLine>(body)) {
        // The timer stops while the reader processes a line: this time is not silence of the agent.
        silence.stop();
        yield { line, clockOffsetNs: clock.monotonicNs() - line.atNs };
        silence.start();
      }
    } finally {
      body.destroy();
    }
  }

  #apply(line: Exclude<NumberedLine, LostEvents>, clockOffsetNs: number): void {
    // A draining agent rejects new instances.
    if (line.kind === "health" && line.health.isDraining) this.#observeNode(null);
    const clients = this.#followed.get(line.instanceId);
    if (clients === undefined) return;
    const event = eventFromLine(line, clockOffsetNs);
    for (const client of clients) client.apply(event, line.seq);
    if (event.kind === "ended") this.#followed.delete(line.instanceId);
  }

  /**
   * Restores all views from the agent's state. Events that the state already includes are skipped later by their
   * sequence number.
   */
  async #restoreAll(): Promise<void> {
    const { seq, instances, node } = await this.state();
    const listed = new Map(instances.map((instance) => [instance.spec.id, instance]));
    if (this.#endsLeft) for (const id of listed.keys()) if (!this.#followed.has(id)) this.#owedDeletions.add(id);
    this.#endsLeft = false;
    if (this.#owedDeletions.size > 0) this.#tasks.run(() => this.#deleteOwed());
    for (const [id, clients] of this.#followed) {
      const instance = listed.get(id);
      for (const client of clients) {
        if (instance !== undefined) client.restore(instance, seq);
        else if (client.wasListed) this.#forget(client);
      }
    }
    this.#isConnected = true;
    this.#failure = null;
    const isDraining = instances.some(({ containers }) => containers.some(({ health }) => health.isDraining));
    this.#observeNode(isDraining ? null : node);
    this.#changed.notify();
  }

  async #deleteOwed(): Promise<void> {
    await Promise.all(
      [...this.#owedDeletions].map(async (id) => {
        try {
          await this.connection.json({ method: "DELETE", path: `/instances/${encodeURIComponent(id)}?how=delete` });
          this.#owedDeletions.delete(id);
        } catch (error) {
          this.log("an instance stays until its agent responds again", error);
        }
      }),
    );
  }

  /** Ends a client whose instance is missing in the agent's state, because the agent has restarted. */
  #forget(client: HttpInstance): void {
    this.unfollow(client);
    client.apply(
      { kind: "ended", error: new ContainerConnectionLost("the instance agent has lost the instance") },
      Infinity,
    );
  }

  #lost(error: unknown): void {
    if (this.#isConnected) this.log("the connection to an instance agent is lost", error);
    if (this.#isConnected) this.#observeNode(null);
    this.#isConnected = false;
    this.#failure = error;
    const silentMs = (this.#options.clock.monotonicNs() - this.#lastLineNs) / 1e6;
    const isUnreachable = error instanceof AgentConnectionLost && error.wasNotSent;
    if (!this.#hasAborted && (isUnreachable || silentMs > this.#limits.stallMsMax)) {
      this.#hasAborted = true;
      this.connection.abortAll(error instanceof Error ? error : new Error(String(error)));
    }
    for (const clients of this.#followed.values()) for (const client of clients) client.markUnhealthy();
    if (silentMs > this.#limits.awayMsMax)
      for (const clients of this.#followed.values()) for (const { view } of clients) view.markAway();
    this.#changed.notify();
  }
}

/** A timer that aborts its signal after `silenceMsMax`, unless it is stopped before. */
class SilenceTimer implements Disposable {
  readonly #controller = new AbortController();
  readonly #clock: Clock;
  readonly #silenceMsMax: number;
  #timer: Disposable | null = null;

  constructor(clock: Clock, silenceMsMax: number) {
    this.#clock = clock;
    this.#silenceMsMax = silenceMsMax;
    this.start();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  start(): void {
    this.#timer = this.#clock.timer(this.#silenceMsMax, () =>
      this.#controller.abort(new AgentConnectionLost(new Error(`no heartbeat for ${this.#silenceMsMax} ms`))),
    );
  }

  stop(): void {
    this.#timer?.[Symbol.dispose]();
    this.#timer = null;
  }

  [Symbol.dispose](): void {
    this.stop();
  }
}
