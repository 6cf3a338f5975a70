import type { NodeDescription } from "../nodes/index.ts";
import type { ListedInstance } from "./agent-events.ts";
import type { InstanceAgent } from "./instance-agent.ts";

/** An agent on another machine, which may stop to respond. */
export interface RemoteAgent extends InstanceAgent {
  /** Calls `observe` with the agent's machine each time that the agent responds again, and with null when it stops to respond. */
  observeNode(observe: (node: NodeDescription | null) => void): void;
  /**
   * Ends the instances that a previous run of the platform has left, except those that `keeps` accepts; resolves with these. An agent that
   * does not respond ends all of them when it does.
   */
  endLeft(keeps: (instance: ListedInstance) => boolean): Promise<readonly ListedInstance[]>;
}
