import type { ByteBudget, Clock, Logger } from "@galatea/base";
import type { NodeId, Nodes } from "../nodes/index.ts";
import type { InstanceAgent } from "../instance-agent/index.ts";
import type { ObjectStore } from "../objects/index.ts";
import type { InstanceCredentials, InstanceLimits, ModelHost } from "../instances/index.ts";
import type { InvocationLimits } from "../invocations/index.ts";
import type { OpenSeries } from "../series/index.ts";

/** What every fleet of the platform shares. */
export interface FleetOptions {
  readonly host: ModelHost;
  /** Asked for the versions of models; transform jobs read it and write to it. */
  readonly store: Pick<ObjectStore, "head" | "get" | "put" | "list">;
  readonly openSeries: OpenSeries;
  /** The sink for what containers print, whole lines with their ends; stream and group are made when absent. */
  readonly openLog: (group: string, stream: string) => (chunk: Uint8Array) => void;
  /** Where a person reads a log group: an address for the sentences of errors. */
  readonly logsLink: (group: string) => string;
  readonly credentials: InstanceCredentials;
  /** Bytes in flight in this process; transform jobs take theirs from it. */
  readonly requestMemory: ByteBudget;
  /** Where the host runs instances. */
  readonly nodes: Nodes;
  /** Runs the instances of a node. */
  readonly agentOf: (node: NodeId) => InstanceAgent;
  readonly instanceLimits: InstanceLimits;
  readonly invocationLimits: InvocationLimits;
  readonly clock: Clock;
  readonly logger: Logger;
}
