import type { VariantPlan } from "../definitions/index.ts";
import type { InstanceModels } from "../instances/index.ts";

const bringSecondsDefault = 1800;

/** What each instance of a variant has to have of its model. */
export function instanceModels({ variant, model }: VariantPlan, endpointName: string): InstanceModels {
  const [container] = model.containers;
  if (container.Mode === "MultiModel") {
    const modelDataUrl = container.ModelDataUrl ?? "";
    return { kind: "many", owner: { endpointName, variantName: variant.VariantName, modelDataUrl } };
  }
  const seconds = variant.ModelDataDownloadTimeoutInSeconds ?? bringSecondsDefault;
  return { kind: "one", container, bringMsMax: seconds * 1000 };
}
