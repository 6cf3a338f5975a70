import type { SimulatePrincipalPolicyRequest } from "@aws-sdk/client-iam";
import { AwsError } from "../../../base/index.ts";
import type { OperationHandlers } from "../../wire/index.ts";
import type { IamOptions } from "./iam-words.ts";
import { existingRole } from "./roles.ts";

const pageMax = 100;

/**
 * Whether a role may do what clients are about to do as it. Policies are kept here and not evaluated, and who assumed a role may
 * do everything: that is what a simulation is told.
 */
export function simulationHandlers(options: IamOptions): OperationHandlers {
  return {
    async SimulatePrincipalPolicy(input: SimulatePrincipalPolicyRequest) {
      const arn = input.PolicySourceArn as string;
      const role = await existingRole(options, arn.slice(arn.lastIndexOf("/") + 1));
      if (role.arn !== arn) throw new AwsError("NoSuchEntity", `The role with name ${arn} cannot be found.`);
      const resources = input.ResourceArns ?? ["*"];
      const start = Number(input.Marker ?? 0);
      const total = (input.ActionNames ?? []).length * resources.length;
      if (!Number.isSafeInteger(start) || start < 0) throw new AwsError("InvalidInput", "Marker is not one of ours.");
      const end = Math.min(total, start + Math.min(input.MaxItems ?? pageMax, pageMax));
      const results = [];
      for (let at = start; at < end; at++) {
        results.push({
          EvalActionName: input.ActionNames?.[Math.floor(at / resources.length)],
          EvalResourceName: resources[at % resources.length],
          EvalDecision: "allowed",
          MatchedStatements: [],
          MissingContextValues: [],
        });
      }
      const isTruncated = end < total;
      return { EvaluationResults: results, IsTruncated: isTruncated, Marker: isTruncated ? String(end) : undefined };
    },
  };
}
