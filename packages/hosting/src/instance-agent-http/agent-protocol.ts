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

/** Version of the protocol, which client and server send in every message. Each of them rejects another version. */
export const agentProtocolVersion = "1";

/** Headers of the protocol. The names of a container's headers are sent with the prefix `containerHeaderPrefix`. */
export const agentHeaders = {
  protocol: "x-agent-protocol",
  /** In requests of a platform whose records other platforms can acquire: a number that is higher than those of its predecessors. */
  epoch: "x-agent-epoch",
  /** A random id of the client's process, which differs between a platform and its gateways. */
  client: "x-agent-client",
  /** In error responses: the code of the error. The body is an `AgentErrorBody`. */
  error: "x-agent-error",
  /** In responses to invocations: the status of the container's response. */
  status: "x-agent-status",
  /** In invocations: the path on the container. */
  path: "x-agent-container-path",
  isStreamed: "x-agent-streamed",
  mayGoElsewhere: "x-agent-may-go-elsewhere",
  /** In invocations: present if the server must buffer the body, so that it can send it again. */
  isBuffered: "x-agent-buffered",
  /** In responses to an acquire, and in invocations that use the acquired model: the number of the lease. */
  lease: "x-agent-lease",
  cacheHit: "x-agent-cache-hit",
  waitedUs: "x-agent-waited-us",
} as const;

export const containerHeaderPrefix = "x-container-";

/** Maximum bytes of a body that the server buffers, so that it can send it again. */
export const bufferedBodyBytesMax = 2 ** 20;

/** Interval of heartbeats in an event stream, in milliseconds. */
export const eventHeartbeatMs = 500;

export interface AgentErrorBody {
  readonly code: string;
  readonly message: string;
  readonly target?: string;
  readonly status?: number;
  readonly containerName?: string;
  readonly lastLines?: readonly string[];
}

/**
 * The error if the peer has another version of the protocol, sent a wrong token or an invalid request, or is not an
 * agent.
 */
export class AgentProtocolError extends Error {
  constructor(message: string) {
    super(message);
    this.name = "AgentProtocolError";
  }
}

/** The error if a platform that has acquired the records later uses the agent. */
export class PlatformSuperseded extends ContainerConnectionLost {
  constructor(message = "another platform has acquired the records and uses this instance agent") {
    super(message);
    this.name = "PlatformSuperseded";
  }
}

interface ErrorCodec {
  readonly code: string;
  readonly is: (error: unknown) => boolean;
  readonly details?: (error: never) => Partial<AgentErrorBody>;
  readonly decode: (wire: AgentErrorBody) => Error;
}

/**
 * Conversions of errors, by error class. The first match applies, so that subclasses come before their base classes.
 */
const errorCodecs: readonly ErrorCodec[] = [
  { code: "not-sent", is: (error) => error instanceof RequestNotSent, decode: () => new RequestNotSent() },
  { code: "container-late", is: (error) => error instanceof ContainerTimeout, decode: () => new ContainerTimeout() },
  {
    code: "superseded",
    is: (error) => error instanceof PlatformSuperseded,
    decode: ({ message }) => new PlatformSuperseded(message),
  },
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

/**
 * A line of an event stream. `atNs` is the agent's monotonic clock when it wrote the line. Times in events are values
 * of the same clock.
 */
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

/**
 * Converts the times of an event to the reader's clock. `clockOffsetNs` is the reader's monotonic clock minus the
 * agent's.
 */
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

/** The agent's state, with the agent's monotonic clock at the time of reading. */
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
