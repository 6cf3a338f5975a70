import type { Logger } from "@galatea/base";
import type { ConfinementRow } from "@galatea/server/backends/python";
import type { BackendOptions, ServeOptions } from "../../options/index.ts";
import type { ContainerPlan } from "../container-environment.ts";
import type { DataDirectories } from "../../data-directory/index.ts";
import type { OpenedGpus } from "../gpus.ts";

/** What backends are made of. */
export interface BackendDependencies {
  readonly options: BackendOptions & Pick<ServeOptions, "container">;
  /** What a container's environment asks for; null for a server that is none. */
  readonly plan: ContainerPlan | null;
  readonly log: Logger;
  readonly directories: DataDirectories;
  readonly gpus: Pick<OpenedGpus, "count" | "bytesOf">;
  /** See TenantsOptions. */
  readonly onConfinement: (rows: readonly ConfinementRow[]) => void;
}
