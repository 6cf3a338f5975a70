import type { NodeDescription } from "../nodes/index.ts";
import type { ListedInstance } from "./agent-events.ts";
import type { InstanceAgent } from "./instance-agent.ts";

/** An agent on another machine, which may become unreachable. */
export interface RemoteAgent extends InstanceAgent {
  /**
   * Sets a function that is called with the agent's node whenever the agent responds again, and with null when it
   * becomes unreachable.
   */
  observeNode(observe: (node: NodeDescription | null) => void): void;
  /**
   * Begins to stop the instances that a previous run of the platform left running, except those that `keeps` accepts.
   * Resolves with the kept ones. If the agent does not respond, none is kept: all are stopped when the agent responds again.
   */
  endLeft(keeps: (instance: ListedInstance) => boolean): Promise<readonly ListedInstance[]>;
}
