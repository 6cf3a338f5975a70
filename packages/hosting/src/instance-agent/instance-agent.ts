import type { Readable } from "node:stream";
import type { InstanceUsage, WholeReply, WholeReplyOptions } from "../instances/index.ts";
import type { NodeDescription } from "../nodes/index.ts";
import type { AgentEvent, InstanceEvent, ListedInstance, LostEvents } from "./agent-events.ts";
import type { AgentInstanceSpec, OnStartFailure } from "./agent-spec.ts";
import type { ContainerView, InstanceView } from "./instance-view.ts";

/** A request to a container. */
export interface AgentRequest {
  /** What is asked of the container, such as `/v1/chat/completions`; its invocation unless given. */
  readonly containerPath?: string | undefined;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  /** A Buffer can be sent again; a stream is consumed or destroyed. */
  readonly body: Buffer | Readable;
  /** Whether the reply may be silent for as long as its signal lets it. */
  readonly isStreamed: boolean;
  /** Rejects with NotSent instead of waiting for the container's successor: there is another instance. */
  readonly mayGoElsewhere: boolean;
  readonly signal: AbortSignal;
}

/** A container's reply, whatever its status. */
export interface AgentReply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** Must be consumed or destroyed. */
  readonly body: Readable;
}

export interface Invocable {
  /**
   * Rejects with NotSent, ContainerGone, ContainerLate or InstanceFailure, those of `acquire` where the container has lost the model,
   * or the signal's reason.
   */
  invoke(request: AgentRequest): Promise<AgentReply>;
}

/** A model that stays loaded until disposed. A model that its container lost is loaded again by `invoke`. */
export interface AcquiredModel extends Invocable, Disposable {
  /** Whether it was loaded when asked for. */
  readonly cacheHit: boolean;
  readonly waitedUs: number;
}

/** A request whose reply is gathered. */
export interface GatheredRequest extends WholeReplyOptions {
  readonly headers: Record<string, string>;
  readonly body: Buffer;
}

export interface AgentContainer extends Invocable {
  readonly name: string;
  readonly view: ContainerView;
  /** As `invoke`; rejects also with what `admit` throws. */
  invokeWhole(request: GatheredRequest): Promise<WholeReply>;
  /** How a batch is to be sent, as the container says it once it is in service; null where it says nothing. */
  executionParameters(signal: AbortSignal): Promise<string | null>;
  /** Loads the model where it is not loaded. Rejects with ModelMissingError, ModelLoadError, ModelNotReadyError or InstanceFailure. */
  acquire(target: string, signal: AbortSignal): Promise<AcquiredModel>;
  /** Unloads a model that no request holds; its files stay on the disk. */
  release(id: string): void;
  /** Another instance has seen another object for the model: an old version goes. */
  recheck(target: string): void;
}

/** An instance that is put, or will be. */
export interface AgentInstance {
  readonly id: string;
  readonly view: InstanceView;
  /** In the order of its spec. */
  readonly containers: readonly AgentContainer[];
  /** Starts the instance; one that the agent has already stays as it is. Resolves with whether it was there. */
  put(onStartFailure: OnStartFailure): Promise<boolean>;
  /** Follows the instance where the agent has it; resolves with whether it has. */
  attach(): Promise<boolean>;
  /** By container; null for one that does not run. */
  usages(): Promise<readonly (readonly [name: string, usage: InstanceUsage | null])[]>;
  /** Stops everything; resolves with whether it was there when nothing of it is left. */
  delete(): Promise<boolean>;
  /** As `delete`, but unpacked models stay for the platform's next start. */
  leave(): Promise<boolean>;
}

export interface AgentState {
  /** The newest event that it includes. */
  readonly seq: number;
  readonly node: NodeDescription;
  readonly instances: readonly ListedInstance[];
}

export interface EventReading {
  /** The last event that is known; those after it come first. The newest unless given. */
  readonly after?: number | undefined;
  readonly signal: AbortSignal;
}

/**
 * The instances of one node. Hosting knows nothing else of them: it puts instances, sends requests to their containers, and decides by
 * views that the agent's events keep. Every implementation passes `instance-agent.contract.ts`.
 */
export interface InstanceAgent extends AsyncDisposable {
  /** A client of an instance; nothing happens before `put` or `attach`. `onEvent` is called after the view has changed and must not throw. */
  instance(spec: AgentInstanceSpec, onEvent: (event: InstanceEvent) => void): AgentInstance;
  state(): Promise<AgentState>;
  /**
   * Every event of every instance, in order; ends by rejecting with the signal's reason. A reader that is too slow gets `lost` in place
   * of what it missed.
   */
  events(options: EventReading): AsyncGenerator<AgentEvent | LostEvents, void>;
}
