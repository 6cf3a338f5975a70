import type { ByteBudget, Clock, Logger } from "@galatea/base";
import type { NodeId, Nodes } from "../nodes/index.ts";
import type { InstanceOpener } from "../instance-agent/index.ts";
import type { ObjectStore } from "../objects/index.ts";
import type { InstanceCredentials, InstanceLimits, ModelHost } from "../instances/index.ts";
import type { InvocationLimits } from "../invocations/index.ts";
import type { OpenSeries } from "../series/index.ts";

/** Options that are the same for all fleets of the platform. */
export interface FleetOptions {
  /** Finds the instances of a previous run of the platform. */
  readonly host: Pick<ModelHost, "resume" | "claim" | "runsImages">;
  /** The object store with model data, and with the inputs and outputs of transform jobs. */
  readonly store: Pick<ObjectStore, "head" | "get" | "put" | "list">;
  readonly openSeries: OpenSeries;
  /**
   * Opens a log stream for a container's output and returns a function that appends whole lines. Creates the log group
   * and the stream if they do not exist.
   */
  readonly openLog: (group: string, stream: string) => (chunk: Uint8Array) => void;
  /** Returns the URL of a log group for error messages. */
  readonly logsLink: (group: string) => string;
  readonly credentials: InstanceCredentials;
  /** Budget for the bytes of requests in flight in this process. Transform jobs share it. */
  readonly requestMemory: ByteBudget;
  /** The nodes on which the host runs instances. */
  readonly nodes: Nodes;
  /** True if the fleet replaces a lost instance on another node. False if the instance's host restarts it. */
  readonly replacesLost: boolean;
  /** Returns the agent that runs a node's instances. */
  readonly agentOf: (node: NodeId) => InstanceOpener;
  readonly instanceLimits: InstanceLimits;
  readonly invocationLimits: InvocationLimits;
  readonly clock: Clock;
  readonly logger: Logger;
}
