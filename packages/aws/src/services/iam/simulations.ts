import { AwsError } from "@galatea/base";
import { pageToken, positionOfToken } from "../../wire/index.ts";
import { invalidMarker, type IamOptions } from "./iam-words.ts";
import { requireRole } from "./roles.ts";
import type { IamRows } from "./rows.ts";

const pageMax = 100;

/**
 * Simulates policies for clients that check a role before they use it. Policies are stored but not evaluated, and every assumed role allows
 * everything, so every simulated action is allowed.
 */
export function simulationRows(options: IamOptions) {
  return {
    SimulatePrincipalPolicy: {
      resource: (input) => input.PolicySourceArn,
      async handle(input) {
        const { PolicySourceArn: arn, ActionNames: actions, ResourceArns: resources = ["*"], Marker, MaxItems } = input;
        const listing = { operation: "SimulatePrincipalPolicy", input };
        const role = await requireRole(options, arn.slice(arn.lastIndexOf("/") + 1));
        if (role.arn !== arn) throw new AwsError("NoSuchEntity", `The role with name ${arn} cannot be found.`);
        const start = Marker === undefined ? 0 : Number(positionOfToken(listing, Marker, invalidMarker));
        const total = actions.length * resources.length;
        const end = Math.min(total, start + Math.min(MaxItems ?? pageMax, pageMax));
        const results = [];
        for (let at = start; at < end; at++) {
          results.push({
            EvalActionName: actions[Math.floor(at / resources.length)] as string,
            EvalResourceName: resources[at % resources.length],
            EvalDecision: "allowed",
            MatchedStatements: [],
            MissingContextValues: [],
          });
        }
        const isTruncated = end < total;
        return {
          EvaluationResults: results,
          IsTruncated: isTruncated,
          Marker: isTruncated ? pageToken(listing, String(end)) : undefined,
        };
      },
    },
  } satisfies Partial<IamRows>;
}
