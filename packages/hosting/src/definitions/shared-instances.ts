import type { Owner } from "./arns.ts";
import type { ModelRecord, ProductionVariant } from "./records-of-hosting.ts";

/** Returns whether a variant has no model: its instances are for inference components. */
export const isShared = ({ ModelName: name }: Pick<ProductionVariant, "ModelName">) => name === "";

/** Returns a placeholder without containers for the model of such a variant. */
export function noModel(owner: Owner): ModelRecord {
  return { name: "", arn: "", createdMs: 0, owner, containers: [], executionMode: "Serial", request: {} };
}
