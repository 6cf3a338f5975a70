import type { Owner } from "./arns.ts";
import type { ModelRecord, ProductionVariant } from "./hosting-records.ts";

/** Returns whether a variant runs inference components: it has no model. */
export const isComponentVariant = ({ ModelName: name }: Pick<ProductionVariant, "ModelName">) => name === "";

/** Returns the model record of a variant for inference components: a placeholder without containers. */
export function placeholderModel(owner: Owner): ModelRecord {
  return { name: "", arn: "", createdMs: 0, owner, containers: [], executionMode: "Serial", request: {} };
}
