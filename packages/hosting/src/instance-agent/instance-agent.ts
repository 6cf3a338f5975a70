import type { Readable } from "node:stream";
import type { InstanceUsage, ModelHost, BufferedReply, BufferedReplyOptions } from "../instances/index.ts";
import type { NodeDescription } from "../nodes/index.ts";
import type { AgentEvent, InstanceEvent, ListedInstance, LostEvents } from "./agent-events.ts";
import type { AgentInstanceSpec, OnStartFailure } from "./agent-spec.ts";
import type { ContainerView, InstanceView } from "./instance-view.ts";

/** A request to a container. */
export interface AgentRequest {
  /** The path on the container, such as `/v1/chat/completions`; by default the container's invocation path. */
  readonly containerPath?: string | undefined;
  /** Header names are lower case. */
  readonly headers: Readonly<Record<string, string>>;
  /** A Buffer can be sent again. A stream cannot; it is consumed or destroyed. */
  readonly body: Buffer | Readable;
  /** True if the response has no read time-out other than the signal. */
  readonly isStreamed: boolean;
  /**
   * True if another instance can take the request: rejects with NotSent instead of waiting for the container to
   * restart.
   */
  readonly mayGoElsewhere: boolean;
  readonly signal: AbortSignal;
}

/** A container's response with any status. */
export interface AgentReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Must be consumed or destroyed. */
  readonly body: Readable;
}

export interface Invocable {
  /**
   * Rejects with NotSent, ContainerConnectionLost, ContainerTimeout, InstanceFailure, the signal's reason, or an error of `acquire` when the container
   * has lost the model.
   */
  invoke(request: AgentRequest): Promise<AgentReply>;
}

/** A lease: the model stays loaded until this is disposed. `invoke` loads it again when its container has lost it. */
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
  /** Resolves with the body of `/execution-parameters` once the container is in service; null where it has none. */
  executionParameters(signal: AbortSignal): Promise<string | null>;
  /** Loads the model unless it is loaded, and pins it. Rejects with ModelMissingError, ModelLoadError, ModelNotReadyError or InstanceFailure. */
  acquire(target: string, signal: AbortSignal): Promise<AcquiredModel>;
  /** Unloads an idle model; its files stay on disk. */
  release(id: string): void;
  /** Compares the model with its object, which another instance found replaced, and removes an old version. */
  recheck(target: string): void;
}

/** A client of one instance of an agent. */
export interface AgentInstance {
  readonly id: string;
  readonly view: InstanceView;
  /** In the order of the spec. */
  readonly containers: readonly AgentContainer[];
  /** Starts the instance, unless the agent has it already. Resolves with whether the agent had it. */
  put(onStartFailure: OnStartFailure): Promise<boolean>;
  /** Follows an instance that the agent has. Resolves with false when the agent does not have it. */
  attach(): Promise<boolean>;
  /** Resolves with the usage of each container; null for a container that does not run. */
  usages(): Promise<readonly (readonly [name: string, usage: InstanceUsage | null])[]>;
  /** Stops and removes the instance. Resolves when it is removed, with whether the agent had it. */
  delete(): Promise<boolean>;
  /** Deletes the instance like `delete`. An agent that does not respond deletes it when it responds again; the promise does not wait for that. */
  discard(): Promise<void>;
  /** Like `delete`, but keeps unpacked models for the next run of the platform. */
  shutDown(): Promise<boolean>;
}

/** Opens clients of instances. */
export type InstanceOpener = Pick<InstanceAgent, "instance">;

/** Runs instances outside of this process, with an agent for each, and finds those of a previous run again. */
export interface InstanceHost extends InstanceOpener, Pick<ModelHost, "resume" | "claim" | "runsImages"> {}

export interface AgentState {
  /** The number of the newest event that the state includes. */
  readonly seq: number;
  readonly node: NodeDescription;
  readonly instances: readonly ListedInstance[];
}

export interface EventReadOptions {
  /** The number of the last known event: reading starts after it. By default, after the newest event. */
  readonly after?: number | undefined;
  readonly signal: AbortSignal;
}

/**
 * The agent of one node, and hosting's only interface to its instances: hosting puts instances, sends requests to their containers, and
 * routes by views that the agent's events update. Every implementation passes `instance-agent.contract.ts`.
 */
export interface InstanceAgent extends AsyncDisposable {
  /**
   * Returns a client of an instance, which does nothing before `put` or `attach`. `onEvent` is called after the view has changed; it must not throw.
   */
  instance(spec: AgentInstanceSpec, onEvent: (event: InstanceEvent) => void): AgentInstance;
  state(): Promise<AgentState>;
  /**
   * Yields every event of every instance in order, until it rejects with the signal's reason. A slow reader gets `lost` instead of the
   * events that it missed.
   */
  events(options: EventReadOptions): AsyncGenerator<AgentEvent | LostEvents, void>;
}
