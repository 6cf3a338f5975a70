import type { ModelRecord } from "./hosting-records.ts";

/**
 * Returns the error text if an endpoint with this model cannot have shadow variants; null if it can. The exclusions are
 * those of SageMaker's guide, "Shadow tests: Exclusions".
 */
export function shadowModelError({ name, containers }: ModelRecord): string | null {
  if (containers.some(({ Mode: mode }) => mode === "MultiModel")) {
    return `Shadow variants do not support multi-model endpoints: model "${name}" has a container in MultiModel mode.`;
  }
  if (containers.length > 1) {
    return `Shadow variants do not support multi-container endpoints: model "${name}" has ${containers.length} containers.`;
  }
  return null;
}
