import { containerDigest, type InstanceUsage, type BufferedReply } from "../instances/index.ts";
import {
  ContainerConnectionLost,
  InstanceView,
  RequestNotSent,
  UnknownInstance,
  type AcquiredModel,
  type AgentContainer,
  type AgentInstance,
  type AgentInstanceSpec,
  type AgentReply,
  type AgentRequest,
  type ContainerView,
  type BufferedAgentRequest,
  type InstanceEvent,
  type ListedInstance,
  type OnStartFailure,
} from "../instance-agent/index.ts";
import { AgentConnectionLost, type AgentConnection, type AgentResponse } from "./agent-connection.ts";
import { agentHeaders, bufferedBodyBytesMax, containerHeaderPrefix, type WireUsages } from "./agent-protocol.ts";

/** The members of `HttpInstanceAgent` that `HttpInstance` uses. */
export interface InstanceFollower {
  readonly connection: AgentConnection;
  /**
   * Starts to deliver events of the instance. Resolves with the agent's state of the instance; null if the agent does
   * not run it.
   */
  follow(instance: HttpInstance): Promise<ListedInstance | null>;
  unfollow(instance: HttpInstance): void;
  /** Starts monitoring the connection, so that requests in flight fail if the agent no longer responds. */
  watch(): void;
  log(text: string, error: unknown): void;
  /** True if a shutdown of the platform leaves instances that have an owner running, for the next run to adopt. */
  readonly leavesInstances: boolean;
  /** Deletes the instance when the agent responds again. */
  oweDeletion(id: string): void;
}

/** A client of an instance on another node or in another process. */
export class HttpInstance implements AgentInstance {
  readonly spec: AgentInstanceSpec;
  readonly view: InstanceView;
  readonly containers: readonly HttpContainer[];
  readonly #agent: InstanceFollower;
  readonly #onEvent: (event: InstanceEvent) => void;
  /** Sequence number of the last event that the view includes. */
  #viewSeq = 0;
  #isMarkedUnhealthy = false;
  /** True if the agent has listed the instance since this client was created. */
  wasListed = false;

  constructor(agent: InstanceFollower, spec: AgentInstanceSpec, onEvent: (event: InstanceEvent) => void) {
    this.#agent = agent;
    this.spec = spec;
    this.#onEvent = onEvent;
    this.view = new InstanceView(spec);
    this.containers = this.view.containers.map((view, position) => {
      return new HttpContainer(agent, view, `${this.#path}/containers/${position}`);
    });
  }

  get id(): string {
    return this.spec.id;
  }

  async put(onStartFailure: OnStartFailure): Promise<boolean> {
    // Without this reset, a state of the agent from before the PUT request would end this client.
    this.wasListed = false;
    this.view.begin();
    const listed = await this.#agent.follow(this);
    const isReplaced = listed !== null && !isSameSpec(listed.spec, this.spec);
    if (isReplaced) {
      // Events of the replaced instance, such as its end, must not change this client's view.
      this.#agent.unfollow(this);
      await this.#end("delete");
    }
    const body = JSON.stringify({ spec: this.spec, onStartFailure });
    try {
      const request = { method: "PUT", path: this.#path, body } as const;
      const { existed } = await this.#agent.connection.json<{ readonly existed: boolean }>(request);
      this.wasListed = true;
      if (existed || isReplaced) await this.#agent.follow(this);
      return existed;
    } catch (error) {
      this.#agent.unfollow(this);
      throw error;
    }
  }

  async attach(): Promise<boolean> {
    const exists = (await this.#agent.follow(this)) !== null;
    if (!exists) this.#agent.unfollow(this);
    return exists;
  }

  async usages(): Promise<readonly (readonly [name: string, usage: InstanceUsage | null])[]> {
    return await this.#agent.connection.json<WireUsages>({ method: "GET", path: `${this.#path}/usages` });
  }

  async delete(): Promise<boolean> {
    return await this.#end("delete");
  }

  async discard(): Promise<void> {
    try {
      await this.delete();
    } catch (error) {
      if (!(error instanceof ContainerConnectionLost)) throw error;
      this.#agent.unfollow(this);
      this.#agent.oweDeletion(this.id);
    }
  }

  async shutDown(): Promise<boolean> {
    if (this.#agent.leavesInstances && this.spec.owner !== null) {
      this.#agent.unfollow(this);
      return true;
    }
    return await this.#end("shutDown");
  }

  /** Restores the view to the agent's state after event `seq`. Called by `HttpInstanceAgent`. */
  restore(listed: ListedInstance, seq: number): void {
    this.#viewSeq = seq;
    this.#isMarkedUnhealthy = false;
    this.wasListed = true;
    this.view.restore(listed);
  }

  /** Applies an event. Called by `HttpInstanceAgent`. */
  apply(event: InstanceEvent, seq: number): void {
    if (seq > this.#viewSeq) this.view.apply(event);
    this.#onEvent(event);
  }

  /**
   * Marks all containers as unhealthy after the connection was lost, until `restore`. Called by `HttpInstanceAgent`.
   */
  markUnhealthy(): void {
    if (this.#isMarkedUnhealthy) return;
    this.#isMarkedUnhealthy = true;
    for (const { view } of this.containers) view.setHealth({ ...view.health, isUnhealthy: true });
  }

  get #path(): string {
    return `/instances/${encodeURIComponent(this.spec.id)}`;
  }

  async #end(how: "delete" | "shutDown"): Promise<boolean> {
    this.#agent.watch();
    const path = `${this.#path}?how=${how}`;
    return (await this.#agent.connection.json<{ readonly existed: boolean }>({ method: "DELETE", path })).existed;
  }
}

/** Returns whether the containers of two specs start with the same specifications. */
const isSameSpec = (one: AgentInstanceSpec, other: AgentInstanceSpec) => digestOf(one) === digestOf(other);
const digestOf = ({ containers }: AgentInstanceSpec) => containers.map(containerDigest).join();

class HttpContainer implements AgentContainer {
  readonly view: ContainerView;
  readonly #agent: InstanceFollower;
  readonly #path: string;

  constructor(agent: InstanceFollower, view: ContainerView, path: string) {
    this.#agent = agent;
    this.view = view;
    this.#path = path;
  }

  get name(): string {
    return this.view.name;
  }

  async invoke(request: AgentRequest): Promise<AgentReply> {
    return await this.#invoke(request, {});
  }

  async invokeBuffered({ headers: sent, body, admit, signal }: BufferedAgentRequest): Promise<BufferedReply> {
    const request = { headers: sent, body, isStreamed: false, mayGoElsewhere: false, signal };
    const reply = await this.#invoke(request, {});
    const chunks: Buffer[] = [];
    let byteLength = 0;
    try {
      for await (const chunk of reply.body as AsyncIterable<Buffer>) {
        byteLength += chunk.length;
        admit(byteLength);
        chunks.push(chunk);
      }
    } finally {
      reply.body.destroy();
    }
    return { status: reply.status, body: Buffer.concat(chunks, byteLength) };
  }

  async executionParameters(signal: AbortSignal): Promise<string | null> {
    const path = `${this.#path}/execution-parameters`;
    return await this.#agent.connection.json<string | null>({ method: "GET", path, signal });
  }

  async acquire(target: string, signal: AbortSignal): Promise<AcquiredModel> {
    const demand = this.view.models?.demand.begin(target);
    try {
      const path = `${this.#path}/models?target=${encodeURIComponent(target)}`;
      const response = await this.#agent.connection.send({ method: "POST", path, signal });
      const lease = { [agentHeaders.lease]: textOf(response, agentHeaders.lease) };
      return {
        cacheHit: textOf(response, agentHeaders.cacheHit) === "true",
        waitedUs: Number(textOf(response, agentHeaders.waitedUs)),
        invoke: (request) => this.#invoke(request, lease),
        [Symbol.dispose]: () => {
          demand?.[Symbol.dispose]();
          response.body.destroy();
        },
      };
    } catch (error) {
      demand?.[Symbol.dispose]();
      throw error;
    }
  }

  release(id: string): void {
    this.#send("DELETE", `${this.#path}/models/${encodeURIComponent(id)}`);
  }

  recheck(target: string): void {
    this.#send("POST", `${this.#path}/rechecks?target=${encodeURIComponent(target)}`);
  }

  async #invoke(request: AgentRequest, lease: Record<string, string>): Promise<AgentReply> {
    const { containerPath, body, isStreamed, mayGoElsewhere, signal } = request;
    const sent: Record<string, string> = { ...lease };
    for (const [name, value] of Object.entries(request.headers)) sent[`${containerHeaderPrefix}${name}`] = value;
    if (containerPath !== undefined) sent[agentHeaders.path] = containerPath;
    if (isStreamed) sent[agentHeaders.isStreamed] = "1";
    if (mayGoElsewhere) sent[agentHeaders.mayGoElsewhere] = "1";
    if (Buffer.isBuffer(body) && body.length <= bufferedBodyBytesMax) sent[agentHeaders.isBuffered] = "1";
    try {
      const path = `${this.#path}/invocations`;
      const response = await this.#agent.connection.send({ method: "POST", path, headers: sent, body, signal });
      return {
        status: Number(textOf(response, agentHeaders.status)),
        headers: containerHeaders(response),
        body: response.body,
      };
    } catch (error) {
      const wasNotSent = error instanceof AgentConnectionLost ? error.wasNotSent : error instanceof UnknownInstance;
      if (wasNotSent && mayGoElsewhere) throw new RequestNotSent({ cause: error });
      throw error;
    }
  }

  #send(method: "DELETE" | "POST", path: string): void {
    this.#agent.connection.json({ method, path }).catch((error: unknown) => {
      this.#agent.log("a message to an instance agent failed", error);
    });
  }
}

function textOf({ headers: received }: AgentResponse, name: string): string {
  const value = received[name];
  if (typeof value === "string") return value;
  throw new ContainerConnectionLost(`the instance agent's response has no ${name}`);
}

function containerHeaders({ headers: received }: AgentResponse): AgentReply["headers"] {
  const found: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(received)) {
    if (value !== undefined && name.startsWith(containerHeaderPrefix))
      found[name.slice(containerHeaderPrefix.length)] = value;
  }
  return found;
}
