import type { Logger } from "@galatea/base";
import type { ConfinementRow } from "@galatea/server/backends/python";
import type { BackendOptions, ServeOptions } from "../../options/index.ts";
import type { ContainerPlan } from "../container-environment.ts";
import type { DataDirectories } from "../../data-directory/index.ts";
import type { OpenedGpus } from "../gpus.ts";

/** The dependencies of all backends. */
export interface BackendDependencies {
  readonly options: BackendOptions & Pick<ServeOptions, "container">;
  /** The settings from a container's environment; null for a server that is not a container. */
  readonly plan: ContainerPlan | null;
  readonly log: Logger;
  readonly directories: DataDirectories;
  readonly gpus: Pick<OpenedGpus, "count" | "bytesOf">;
  /** Called with the isolation measures of this machine, before the first tenant's code runs. */
  readonly onConfinement: (rows: readonly ConfinementRow[]) => void;
}
