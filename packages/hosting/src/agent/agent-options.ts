import type { Clock, Logger } from "@galatea/base";
import type { MemoryHolder, MemoryShare } from "../nodes/index.ts";
import type { AgentLimits } from "./agent-limits.ts";
import type { AgentObserver, ModelContainer } from "./model-container.ts";
import type { ArchiveSource } from "./model-source.ts";
import type { ModelTrees } from "./model-trees.ts";

export interface AgentOptions {
  readonly trees: ModelTrees;
  readonly limits: AgentLimits;
  readonly source: ArchiveSource;
  /** Resolves with the container when it is up. */
  readonly container: (signal: AbortSignal) => Promise<ModelContainer>;
  readonly observer: AgentObserver;
  /** What its models may have of the node, beside all others; closed with the agent. */
  readonly joinMemory: (agent: MemoryHolder) => MemoryShare;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** A loaded model that stays loaded until released. */
export interface AgentLease extends Disposable {
  readonly id: string;
  /** Whether it was loaded when asked for. */
  readonly cacheHit: boolean;
  readonly waitedUs: number;
}
