import type { ContainerDefinition, ProductionVariant } from "../definitions/index.ts";
import type { ContainerModels } from "../instances/index.ts";

const bringSecondsDefault = 1800;

/** What a container of each instance of a variant has to have of its model. */
export function containerModels(
  container: ContainerDefinition,
  {
    variant,
    endpointName,
    seat,
  }: { readonly variant: ProductionVariant; readonly endpointName: string; readonly seat: number },
): ContainerModels {
  if (container.Mode === "MultiModel") {
    const modelDataUrl = container.ModelDataUrl ?? "";
    return { kind: "many", owner: { endpointName, variantName: variant.VariantName, modelDataUrl, seat } };
  }
  const seconds = variant.ModelDataDownloadTimeoutInSeconds ?? bringSecondsDefault;
  return { kind: "one", container, bringMsMax: seconds * 1000 };
}
