import type { Logger } from "@galatea/base";
import type { ConfinementRow } from "@galatea/server/backends/python";
import type { BackendOptions, ServeOptions } from "../../options/index.ts";
import type { ContainerPlan } from "../container-environment.ts";
import type { DataDirectories } from "../../data-directory/index.ts";
import type { OpenedGpus } from "../gpus.ts";

/** The dependencies of backends. */
export interface BackendDependencies {
  readonly options: BackendOptions & Pick<ServeOptions, "container">;
  /** The settings from a container's environment; null for a server that is no container. */
  readonly plan: ContainerPlan | null;
  readonly log: Logger;
  readonly directories: DataDirectories;
  readonly gpus: Pick<OpenedGpus, "count" | "bytesOf">;
  /** See TenantsOptions. */
  readonly onConfinement: (rows: readonly ConfinementRow[]) => void;
}
