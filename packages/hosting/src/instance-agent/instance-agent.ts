import type { Readable } from "node:stream";
import type { InstanceUsage, ModelHost, BufferedReply, BufferedReplyOptions } from "../instances/index.ts";
import type { NodeDescription } from "../nodes/index.ts";
import type { AgentEvent, InstanceEvent, ListedInstance, LostEvents } from "./agent-events.ts";
import type { AgentInstanceSpec, OnStartFailure } from "./agent-spec.ts";
import type { ContainerView, InstanceView } from "./instance-view.ts";

/** A request to a container. */
export interface AgentRequest {
  /** The path on the container, such as `/v1/chat/completions`. By default, the container's invocation path. */
  readonly containerPath?: string | undefined;
  /** Headers by lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  /** A Buffer can be sent again. A stream cannot: it is read to its end or destroyed. */
  readonly body: Buffer | Readable;
  /** True if only the signal limits the time of the response. */
  readonly isStreamed: boolean;
  /**
   * True if another instance can process the request. `invoke` then rejects with RequestNotSent instead of waiting for
   * a restart of the container.
   */
  readonly mayGoElsewhere: boolean;
  readonly signal: AbortSignal;
}

/** A container's response with any status. */
export interface AgentReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The caller must read the body to its end or destroy it. */
  readonly body: Readable;
}

export interface Invocable {
  /**
   * Sends a request. Rejects with RequestNotSent, ContainerConnectionLost, ContainerTimeout, InstanceFailure, or the
   * signal's reason. If the container has lost the model, it is acquired again, and errors of `acquire` are possible,
   * too.
   */
  invoke(request: AgentRequest): Promise<AgentReply>;
}

/**
 * A lease of a model: the model stays loaded until the lease is disposed. If the container has lost the model, `invoke`
 * loads it again.
 */
export interface AcquiredModel extends Invocable, Disposable {
  /** True if the model was already loaded when it was requested. */
  readonly cacheHit: boolean;
  readonly waitedUs: number;
}

/** A request whose response is buffered. */
export interface BufferedAgentRequest extends BufferedReplyOptions {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

export interface AgentContainer extends Invocable {
  readonly name: string;
  readonly view: ContainerView;
  /** Invokes the container and buffers the response. Rejects like `invoke`, or with the ResponseRejected that `admit` throws. */
  invokeBuffered(request: BufferedAgentRequest): Promise<BufferedReply>;
  /**
   * Resolves with the body of `/execution-parameters` when the container is in service; null if the container does not
   * provide it.
   */
  executionParameters(signal: AbortSignal): Promise<string | null>;
  /**
   * Loads a model unless it is already loaded, and pins it. Rejects with ModelMissingError, ModelLoadError,
   * ModelNotReadyError or InstanceFailure.
   */
  acquire(target: string, signal: AbortSignal): Promise<AcquiredModel>;
  /** Unloads a model if it is idle. Its files stay on disk. */
  release(id: string): void;
  /**
   * Compares a loaded model with its S3 object, and unloads an old version. Called after another instance found that
   * the object was replaced.
   */
  recheck(target: string): void;
}

/** A client of one instance. */
export interface AgentInstance {
  readonly id: string;
  readonly view: InstanceView;
  /** Clients of the containers, in the order of the spec. */
  readonly containers: readonly AgentContainer[];
  /** Starts the instance, unless the agent already runs it. Resolves with whether it did. */
  put(onStartFailure: OnStartFailure): Promise<boolean>;
  /** Follows an instance that the agent already runs. Resolves with false if it does not. */
  attach(): Promise<boolean>;
  /** Resolves with the resource usage of each container by name; null for a container that does not run. */
  usages(): Promise<readonly (readonly [name: string, usage: InstanceUsage | null])[]>;
  /** Stops and removes the instance. Resolves after the removal, with whether the agent ran the instance. */
  delete(): Promise<boolean>;
  /**
   * Deletes the instance. If the agent does not respond, resolves immediately; the instance is deleted when the agent
   * responds again.
   */
  discard(): Promise<void>;
  /** Like `delete`, but keeps unpacked models on disk for the next run of the platform. */
  shutDown(): Promise<boolean>;
}

/** Opens clients of instances. */
export type InstanceOpener = Pick<InstanceAgent, "instance">;

/** Runs instances outside of this process, each with its own agent, and finds the instances of a previous run. */
export interface InstanceHost extends InstanceOpener, Pick<ModelHost, "resume" | "claim" | "runsImages"> {}

export interface AgentState {
  /** Sequence number of the newest event that the state includes. */
  readonly seq: number;
  readonly node: NodeDescription;
  readonly instances: readonly ListedInstance[];
}

export interface EventReadOptions {
  /** Sequence number of the last known event; reading starts after it. By default, the newest event. */
  readonly after?: number | undefined;
  readonly signal: AbortSignal;
}

/**
 * The agent of one node: hosting's only interface to the node's instances. Hosting starts instances, sends requests to
 * their containers, and routes requests by views that events of the agent update. Every implementation must pass
 * `instance-agent.contract.ts`.
 */
export interface InstanceAgent extends AsyncDisposable {
  /**
   * Returns a client of an instance. It has no effect before `put` or `attach`. `onEvent` is called after the view has
   * changed; it must not throw.
   */
  instance(spec: AgentInstanceSpec, onEvent: (event: InstanceEvent) => void): AgentInstance;
  state(): Promise<AgentState>;
  /**
   * Yields the events of all instances in order, until it rejects with the signal's reason. A slow reader gets a `lost`
   * event instead of the events that it missed.
   */
  events(options: EventReadOptions): AsyncGenerator<AgentEvent | LostEvents, void>;
}
