import type { ContainerDefinition, ProductionVariant } from "../definitions/index.ts";
import type { ContainerModels } from "../instances/index.ts";

const bringSecondsDefault = 1800;

/** Returns the source of a container's models: downloaded before the start, or on demand. */
export function containerModels(container: ContainerDefinition, variant: ProductionVariant): ContainerModels {
  if (container.Mode === "MultiModel") return { kind: "many", modelDataUrl: container.ModelDataUrl ?? "" };
  const seconds = variant.ModelDataDownloadTimeoutInSeconds ?? bringSecondsDefault;
  return { kind: "one", container, bringMsMax: seconds * 1000 };
}
