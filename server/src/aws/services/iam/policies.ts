import type { CreatePolicyRequest } from "@aws-sdk/client-iam";
import { AwsError } from "../../../base/index.ts";
import type { CallContext, OperationHandlers } from "../../wire/index.ts";
import { checkDocument, newId, type IamOptions } from "./iam-words.ts";
import type { PolicyRecord } from "./identity-store.ts";
import { quota } from "./roles.ts";

const policiesMax = 1500;

export function policyHandlers(options: IamOptions): OperationHandlers {
  const { store } = options;
  const existing = async (arn: string): Promise<PolicyRecord> => {
    const policy = await store.policy(arn);
    if (policy === null) throw new AwsError("NoSuchEntity", `Policy ${arn} was not found.`);
    return policy;
  };
  const attachmentCount = async (arn: string): Promise<number> =>
    (await store.roles()).filter((role) => role.attachedPolicyArns.includes(arn)).length;
  return {
    async CreatePolicy(input: CreatePolicyRequest, context: CallContext) {
      const name = input.PolicyName as string;
      checkDocument(input.PolicyDocument as string);
      const known = await store.policies();
      if (known.some((policy) => policy.name.toLowerCase() === name.toLowerCase())) {
        const text = `A policy called ${name} already exists. Duplicate names are not allowed.`;
        throw new AwsError("EntityAlreadyExists", text);
      }
      if (known.length >= policiesMax) throw quota("PoliciesPerAccount", policiesMax);
      const path = input.Path ?? "/";
      const policy: PolicyRecord = {
        name,
        path,
        id: newId("ANPA", options.randomBytes),
        arn: `arn:aws:iam::${context.accountId}:policy${path}${name}`,
        createdMs: options.clock.epochMs(),
        document: input.PolicyDocument as string,
        description: input.Description ?? "",
      };
      await store.putPolicy(policy);
      return { Policy: printPolicy(policy, 0) };
    },
    async GetPolicy(input: { readonly PolicyArn: string }) {
      const policy = await existing(input.PolicyArn);
      return { Policy: printPolicy(policy, await attachmentCount(policy.arn)) };
    },
    async DeletePolicy(input: { readonly PolicyArn: string }) {
      const policy = await existing(input.PolicyArn);
      if ((await attachmentCount(policy.arn)) > 0) {
        throw new AwsError("DeleteConflict", "Cannot delete a policy attached to entities.");
      }
      await store.deletePolicy(policy.arn);
      return {};
    },
  };
}

function printPolicy(policy: PolicyRecord, attachmentCount: number): Record<string, unknown> {
  return {
    PolicyName: policy.name,
    PolicyId: policy.id,
    Arn: policy.arn,
    Path: policy.path,
    DefaultVersionId: "v1",
    AttachmentCount: attachmentCount,
    PermissionsBoundaryUsageCount: 0,
    IsAttachable: true,
    Description: policy.description === "" ? undefined : policy.description,
    CreateDate: new Date(policy.createdMs),
    UpdateDate: new Date(policy.createdMs),
  };
}
