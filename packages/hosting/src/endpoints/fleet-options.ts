import type { ByteBudget, Clock, Logger } from "@galatea/base";
import type { NodeId, Nodes } from "../nodes/index.ts";
import type { InstanceAgent } from "../instance-agent/index.ts";
import type { ObjectStore } from "../objects/index.ts";
import type { InstanceCredentials, InstanceLimits, ModelHost } from "../instances/index.ts";
import type { InvocationLimits } from "../invocations/index.ts";
import type { OpenSeries } from "../series/index.ts";

/** The options that all fleets of the platform share. */
export interface FleetOptions {
  readonly host: ModelHost;
  /** The store of the models' versions; transform jobs read and write objects in it. */
  readonly store: Pick<ObjectStore, "head" | "get" | "put" | "list">;
  readonly openSeries: OpenSeries;
  /**
   * Opens the sink for a container's output, whole lines with their ends; creates the stream and the group if absent.
   */
  readonly openLog: (group: string, stream: string) => (chunk: Uint8Array) => void;
  /** Returns the URL of a log group for error messages. */
  readonly logsLink: (group: string) => string;
  readonly credentials: InstanceCredentials;
  /** Budget of bytes in flight in this process, shared with transform jobs. */
  readonly requestMemory: ByteBudget;
  /** The nodes on which the host runs instances. */
  readonly nodes: Nodes;
  /** Returns the agent that runs a node's instances. */
  readonly agentOf: (node: NodeId) => InstanceAgent;
  readonly instanceLimits: InstanceLimits;
  readonly invocationLimits: InvocationLimits;
  readonly clock: Clock;
  readonly logger: Logger;
}
