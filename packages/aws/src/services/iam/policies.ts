import { AwsError } from "@galatea/base";
import { checkPolicyDocument, createIamId, iamQuotaExceeded, type IamOptions } from "./iam-words.ts";
import type { PolicyRecord } from "./identity-store.ts";
import type { IamRows } from "./rows.ts";

const policiesMax = 1500;

export function policyRows(options: IamOptions) {
  const { store } = options;
  const existing = async (arn: string): Promise<PolicyRecord> => {
    const policy = await store.policy(arn);
    if (policy === null) throw new AwsError("NoSuchEntity", `Policy ${arn} was not found.`);
    return policy;
  };
  const attachmentCount = async (arn: string): Promise<number> =>
    (await store.roles()).filter((role) => role.attachedPolicyArns.includes(arn)).length;
  return {
    CreatePolicy: {
      resource: (input, { accountId }) => newPolicyArn(input, accountId),
      async handle(input, { accountId }) {
        const { PolicyName: name, PolicyDocument: document } = input;
        checkPolicyDocument(document);
        const known = await store.policies();
        if (known.some((policy) => policy.name.toLowerCase() === name.toLowerCase())) {
          const text = `A policy called ${name} already exists. Duplicate names are not allowed.`;
          throw new AwsError("EntityAlreadyExists", text);
        }
        if (known.length >= policiesMax) throw iamQuotaExceeded("PoliciesPerAccount", policiesMax);
        const policy: PolicyRecord = {
          name,
          path: input.Path ?? "/",
          id: createIamId("ANPA", options.randomBytes),
          arn: newPolicyArn(input, accountId),
          createdMs: options.clock.epochMs(),
          document,
          description: input.Description ?? "",
          tags: (input.Tags ?? []).map(({ Key, Value }) => ({ key: Key, value: Value })),
        };
        await store.putPolicy(policy);
        return { Policy: printPolicy(policy, 0) };
      },
    },
    GetPolicy: {
      resource: (input) => input.PolicyArn,
      async handle(input) {
        const policy = await existing(input.PolicyArn);
        return { Policy: printPolicy(policy, await attachmentCount(policy.arn)) };
      },
    },
    DeletePolicy: {
      resource: (input) => input.PolicyArn,
      async handle(input) {
        const policy = await existing(input.PolicyArn);
        if ((await attachmentCount(policy.arn)) > 0) {
          throw new AwsError("DeleteConflict", "Cannot delete a policy attached to entities.");
        }
        await store.deletePolicy(policy.arn);
        return {};
      },
    },
  } satisfies Partial<IamRows>;
}

function newPolicyArn(
  { Path = "/", PolicyName }: { readonly Path?: string; readonly PolicyName: string },
  accountId: string,
): string {
  return `arn:aws:iam::${accountId}:policy${Path}${PolicyName}`;
}

function printPolicy(policy: PolicyRecord, attachmentCount: number) {
  const { tags } = policy;
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
    Tags: tags.length === 0 ? undefined : tags.map(({ key, value }) => ({ Key: key, Value: value })),
  };
}
