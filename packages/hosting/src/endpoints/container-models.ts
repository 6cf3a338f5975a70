import type { ContainerDefinition, ProductionVariant } from "../definitions/index.ts";
import type { ContainerModels } from "../instances/index.ts";

const bringSecondsDefault = 1800;

/** Returns the models that a container of each instance of a variant needs. */
export function containerModels(container: ContainerDefinition, variant: ProductionVariant): ContainerModels {
  if (container.Mode === "MultiModel") return { kind: "many", modelDataUrl: container.ModelDataUrl ?? "" };
  const seconds = variant.ModelDataDownloadTimeoutInSeconds ?? bringSecondsDefault;
  return { kind: "one", container, bringMsMax: seconds * 1000 };
}
