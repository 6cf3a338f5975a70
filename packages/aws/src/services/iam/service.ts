import iam from "../../spec/gen/iam.json" with { type: "json" };
import type { IamOperations } from "../../spec/gen/iam.ts";
import { asServiceModel } from "../../spec/index.ts";
import type { ModelledService, OperationRows } from "../../wire/index.ts";
import type { IamOptions } from "./iam-words.ts";
import { policyRows } from "./policies.ts";
import { rolePolicyRows } from "./role-policies.ts";
import { roleRows } from "./roles.ts";
import { simulationRows } from "./simulations.ts";

export interface IamDependencies {
  readonly iam: IamOptions;
}

/** IAM's roles and policies, for `get_execution_role()` and for notebooks that create a role. */
export function iamService({ iam: options }: IamDependencies) {
  const operations: OperationRows<IamOperations> = {
    ...roleRows(options),
    ...rolePolicyRows(options),
    ...policyRows(options),
    ...simulationRows(options),
  };
  return {
    kind: "modelled",
    model: asServiceModel(iam),
    scope: "iam",
    iamPrefix: "iam",
    validationCodes: { json: "ValidationError", query: "ValidationError" },
    operations,
  } as const satisfies ModelledService;
}
