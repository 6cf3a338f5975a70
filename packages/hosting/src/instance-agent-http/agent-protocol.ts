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

interface ErrorRow {
  readonly code: string;
  readonly is: (error: unknown) => boolean;
  readonly of?: (error: never) => Partial<AgentErrorBody>;
  readonly make: (wire: AgentErrorBody) => Error;
}

/** Subclasses come before their base classes. */
const rows: readonly ErrorRow[] = [
  { code: "not-sent", is: (error) => error instanceof RequestNotSent, make: () => new RequestNotSent() },
  { code: "container-late", is: (error) => error instanceof ContainerTimeout, make: () => new ContainerTimeout() },
  {
    code: "container-gone",
    is: (error) => error instanceof ContainerConnectionLost,
    make: ({ message }) => new ContainerConnectionLost(message),
  },
  {
    code: "not-in-service",
    is: (error) => error instanceof InstanceFailure,
    of: ({ containerName, lastLines }: InstanceFailure) => ({ containerName, lastLines }),
    make: ({ message, containerName = "", lastLines = [] }) =>
      new InstanceFailure(message, { containerName, lastLines }),
  },
  {
    code: "model-data",
    is: (error) => error instanceof ModelDataError,
    make: ({ message }) => new ModelDataError(message),
  },
  {
    code: "model-missing",
    is: (error) => error instanceof ModelMissingError,
    of: ({ target }: ModelMissingError) => ({ target }),
    make: ({ target = "" }) => new ModelMissingError(target),
  },
  {
    code: "model-not-ready",
    is: (error) => error instanceof ModelNotReadyError,
    of: ({ reason }: ModelNotReadyError) => ({ message: reason }),
    make: ({ message }) => new ModelNotReadyError(message),
  },
  {
    code: "load-refused",
    is: (error) => error instanceof ModelLoadError,
    of: ({ status }: ModelLoadError) => ({ status }),
    make: ({ message, status = 503 }) => new ModelLoadError(status, message),
  },
  {
    code: "unknown-instance",
    is: (error) => error instanceof UnknownInstance,
    of: ({ what }: UnknownInstance) => ({ message: what }),
    make: ({ message }) => new UnknownInstance(message),
  },
  {
    code: "protocol",
    is: (error) => error instanceof AgentProtocolError,
    make: ({ message }) => new AgentProtocolError(message),
  },
];

export function errorToWire(error: unknown): AgentErrorBody {
  const message = error instanceof Error ? error.message : String(error);
  const row = rows.find(({ is }) => is(error));
  if (row === undefined) return { code: "internal", message };
  return { code: row.code, message, ...row.of?.(error as never) };
}

export function errorFromWire(wire: AgentErrorBody): Error {
  return rows.find(({ code }) => code === wire.code)?.make(wire) ?? new Error(wire.message);
}

/** A line of the stream of events. `atNs`: the agent's monotonic clock when it wrote the line; times in events are by that clock. */
export type EventLine = { readonly atNs: number } & (
  | { readonly kind: "beat" }
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
  line: Exclude<EventLine, { readonly kind: "beat" } | LostEvents>,
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
