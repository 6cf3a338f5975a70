import type { InstanceBudget } from "../definitions/index.ts";
import type { BuiltInRuntime } from "../definitions/index.ts";

/** Where a container answers. */
export type InstanceAddress =
  | { readonly kind: "socket"; readonly path: string }
  | { readonly kind: "tcp"; readonly host: string; readonly port: number };

/** One instance of a variant: a container that answers the contract (`/ping`, `/invocations`, `/models`). */
export interface InstanceSpec {
  /** Of letters, digits and dashes; also the last part of its log stream's name. */
  readonly instanceId: string;
  /** Whose instance it is, for lists of processes. */
  readonly title: string;
  readonly runtime: BuiltInRuntime;
  /** What /opt/ml means to it; exists. The container writes nothing there. */
  readonly mlRoot: string;
  /** Variables of the model's definition and of the platform; nothing of the platform's own environment is added but PATH and the like. */
  readonly environment: Readonly<Record<string, string>>;
  readonly budget: InstanceBudget;
  /** Memory for models, below the budget's: what the container counts its loads against. */
  readonly modelMemoryBytes: number;
  /** Receives the lines the container prints; must not throw. */
  readonly output: (line: string) => void;
}

export interface InstanceUsage {
  /** Processor time since the start, of all its processes. */
  readonly cpuNs: number;
  /** Proportional share of memory of all its processes. */
  readonly memoryBytes: number;
}

export interface InstanceEnd {
  readonly exitCode: number | null;
  readonly signal: string | null;
  /** The last lines it printed, oldest first. */
  readonly lastLines: readonly string[];
}

export interface HostedInstance {
  readonly address: InstanceAddress;
  /** Resolves when the container's main process has been reaped; never rejects. */
  readonly ended: Promise<InstanceEnd>;
  /** The last lines printed so far. */
  lastLines(): readonly string[];
  /** Null once it ended. */
  usage(): Promise<InstanceUsage | null>;
  /** Processor time that its main process has had so far: it stands still while the process is stopped or blocked. Null once it ended. */
  workedNs(): Promise<number | null>;
  /** SIGTERM, then SIGKILL after the grace; resolves when nothing of it is left. */
  stop(graceMs: number): Promise<void>;
}

/** Runs instances somewhere: processes here, pods elsewhere. Every implementation passes `model-host.contract.ts`. */
export interface ModelHost extends AsyncDisposable {
  /** Resolves when the container runs, not when it is healthy. Ends what an earlier life of this host left of the same instance. */
  start(spec: InstanceSpec, signal: AbortSignal): Promise<HostedInstance>;
}
