import { ModelDataError, type InstanceUsage } from "../instances/index.ts";
import {
  ContainerConnectionLost,
  ContainerTimeout,
  InstanceFailure,
  ModelLoadError,
  ModelMissingError,
  ModelNotReadyError,
  RequestNotSent,
  UnknownInstance,
  type AgentEvent,
  type AgentState,
  type InstanceEvent,
  type LostEvents,
} from "../instance-agent/index.ts";

/** Sent by both sides with every request; each side rejects another version. */
export const agentProtocolVersion = "1";

/** Headers of the protocol. Headers of a container are sent with `containerHeaderPrefix` before their names. */
export const agentHeaders = {
  protocol: "x-agent-protocol",
  /** Response: the code of an error; the body is an `AgentErrorBody`. */
  error: "x-agent-error",
  /** Response: the container's status. */
  status: "x-agent-status",
  /** Invocation: the path on the container. */
  path: "x-agent-container-path",
  isStreamed: "x-agent-streamed",
  mayGoElsewhere: "x-agent-may-go-elsewhere",
  /** Invocation: the server buffers the body, so that it can be sent again. */
  isBuffered: "x-agent-buffered",
  /** Invocation, and response to an acquire: the number of the lease. */
  lease: "x-agent-lease",
  cacheHit: "x-agent-cache-hit",
  waitedUs: "x-agent-waited-us",
} as const;

export const containerHeaderPrefix = "x-container-";

/** The longest body that the server buffers, so that it can be sent again. */
export const bufferedBodyBytesMax = 2 ** 20;

/** Interval of heartbeats in the stream of events. */
export const eventHeartbeatMs = 500;

export interface AgentErrorBody {
  readonly code: string;
  readonly message: string;
  readonly target?: string;
  readonly status?: number;
  readonly containerName?: string;
  readonly lastLines?: readonly string[];
}

/** The other side speaks another version of the protocol, sends a wrong token or an invalid request, or is not an agent. */
export class AgentProtocolError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "AgentProtocolError";
  }
}

interface ErrorCodec {
  readonly code: string;
  readonly is: (error: unknown) => boolean;
  readonly details?: (error: never) => Partial<AgentErrorBody>;
  readonly decode: (wire: AgentErrorBody) => Error;
}

/** Subclasses come before their base classes. */
const errorCodecs: readonly ErrorCodec[] = [
  { code: "not-sent", is: (error) => error instanceof RequestNotSent, decode: () => new RequestNotSent() },
  { code: "container-late", is: (error) => error instanceof ContainerTimeout, decode: () => new ContainerTimeout() },
  {
    code: "container-gone",
    is: (error) => error instanceof ContainerConnectionLost,
    decode: ({ message }) => new ContainerConnectionLost(message),
  },
  {
    code: "not-in-service",
    is: (error) => error instanceof InstanceFailure,
    details: ({ containerName, lastLines }: InstanceFailure) => ({ containerName, lastLines }),
    decode: ({ message, containerName = "", lastLines = [] }) =>
      new InstanceFailure(message, { containerName, lastLines }),
  },
  {
    code: "model-data",
    is: (error) => error instanceof ModelDataError,
    decode: ({ message }) => new ModelDataError(message),
  },
  {
    code: "model-missing",
    is: (error) => error instanceof ModelMissingError,
    details: ({ target }: ModelMissingError) => ({ target }),
    decode: ({ target = "" }) => new ModelMissingError(target),
  },
  {
    code: "model-not-ready",
    is: (error) => error instanceof ModelNotReadyError,
    details: ({ reason }: ModelNotReadyError) => ({ message: reason }),
    decode: ({ message }) => new ModelNotReadyError(message),
  },
  {
    code: "load-refused",
    is: (error) => error instanceof ModelLoadError,
    details: ({ status }: ModelLoadError) => ({ status }),
    decode: ({ message, status = 503 }) => new ModelLoadError(status, message),
  },
  {
    code: "unknown-instance",
    is: (error) => error instanceof UnknownInstance,
    details: ({ what }: UnknownInstance) => ({ message: what }),
    decode: ({ message }) => new UnknownInstance(message),
  },
  {
    code: "protocol",
    is: (error) => error instanceof AgentProtocolError,
    decode: ({ message }) => new AgentProtocolError(message),
  },
];

export function errorToWire(error: unknown): AgentErrorBody {
  const message = error instanceof Error ? error.message : String(error);
  const codec = errorCodecs.find(({ is }) => is(error));
  if (codec === undefined) return { code: "internal", message };
  return { code: codec.code, message, ...codec.details?.(error as never) };
}

export function errorFromWire(wire: AgentErrorBody): Error {
  return errorCodecs.find(({ code }) => code === wire.code)?.decode(wire) ?? new Error(wire.message);
}

/** A line of the stream of events. `atNs`: the agent's monotonic clock when it wrote the line; times in events are by that clock. */
export type EventLine = { readonly atNs: number } & (
  | { readonly kind: "heartbeat" }
  | LostEvents
  | Exclude<AgentEvent, { readonly kind: "ended" }>
  | (Omit<Extract<AgentEvent, { readonly kind: "ended" }>, "error"> & { readonly error: AgentErrorBody | null })
);

export function eventToLine(event: AgentEvent | LostEvents, atNs: number): EventLine {
  if (event.kind !== "ended") return { ...event, atNs };
  return { ...event, atNs, error: event.error === null ? null : errorToWire(event.error) };
}

/** Converts times to the reader's clock. `clockOffsetNs`: the reader's monotonic clock minus the agent's. */
export function eventFromLine(
  line: Exclude<EventLine, { readonly kind: "heartbeat" } | LostEvents>,
  clockOffsetNs: number,
): InstanceEvent {
  switch (line.kind) {
    case "ended":
      return { kind: "ended", error: line.error === null ? null : errorFromWire(line.error) };
    case "model":
      return { ...line, model: { ...line.model, usedNs: line.model.usedNs + clockOffsetNs } };
    case "model-used":
      return { ...line, usedNs: line.usedNs + clockOffsetNs };
    default:
      return line;
  }
}

/** The agent's state, and its monotonic clock when it was read. */
export interface WireState extends AgentState {
  readonly atNs: number;
}

export function stateFromWire({ atNs, ...state }: WireState, nowNs: number): AgentState {
  const clockOffsetNs = nowNs - atNs;
  return {
    ...state,
    instances: state.instances.map((instance) => ({
      ...instance,
      containers: instance.containers.map((container) => ({
        ...container,
        models: container.models.map((model) => ({ ...model, usedNs: model.usedNs + clockOffsetNs })),
      })),
    })),
  };
}

export type WireUsages = readonly (readonly [name: string, usage: InstanceUsage | null])[];
