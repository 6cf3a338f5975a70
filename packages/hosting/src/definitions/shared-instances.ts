import type { Owner } from "./arns.ts";
import type { ModelRecord, ProductionVariant } from "./records-of-hosting.ts";

/** Whether a variant has no model: its instances are there for inference components. */
export const isShared = ({ ModelName: name }: Pick<ProductionVariant, "ModelName">) => name === "";

/** What stands for the model of such a variant: it has no containers. */
export function noModel(owner: Owner): ModelRecord {
  return { name: "", arn: "", createdMs: 0, owner, containers: [], executionMode: "Serial", request: {} };
}
