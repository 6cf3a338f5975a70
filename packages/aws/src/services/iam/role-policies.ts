import { AwsError } from "@galatea/base";
import {
  checkPolicyDocument,
  encodePolicyDocument,
  iamPageOf,
  iamQuotaExceeded,
  type IamOptions,
} from "./iam-words.ts";
import type { RoleRecord } from "./identity-store.ts";
import { requireRole } from "./roles.ts";
import { roleArn, type IamRows } from "./rows.ts";

const policiesPerRoleMax = 20;
const inlinePoliciesPerRoleMax = 20;

type AttachedRows = Pick<IamRows, "AttachRolePolicy" | "DetachRolePolicy" | "ListAttachedRolePolicies">;
type InlineRows = Pick<IamRows, "PutRolePolicy" | "GetRolePolicy" | "ListRolePolicies" | "DeleteRolePolicy">;

/** Operations on the attached and the inline policies of roles. */
export function rolePolicyRows(options: IamOptions): AttachedRows & InlineRows {
  return { ...attachedRows(options), ...inlineRows(options) };
}

function attachedRows(options: IamOptions): AttachedRows {
  const { store } = options;
  return {
    AttachRolePolicy: {
      resource: roleArn,
      async handle(input) {
        const role = await requireRole(options, input.RoleName);
        if (role.attachedPolicyArns.includes(input.PolicyArn)) return {};
        const isManagedByAws = /^arn:aws[a-z-]*:iam::aws:policy\//.test(input.PolicyArn);
        if (!isManagedByAws && (await store.policy(input.PolicyArn)) === null) {
          throw new AwsError("NoSuchEntity", `Policy ${input.PolicyArn} does not exist or is not attachable.`);
        }
        if (role.attachedPolicyArns.length >= policiesPerRoleMax)
          throw iamQuotaExceeded("PoliciesPerRole", policiesPerRoleMax);
        await store.putRole({ ...role, attachedPolicyArns: [...role.attachedPolicyArns, input.PolicyArn] });
        return {};
      },
    },
    DetachRolePolicy: {
      resource: roleArn,
      async handle(input) {
        const role = await requireRole(options, input.RoleName);
        if (!role.attachedPolicyArns.includes(input.PolicyArn)) {
          throw new AwsError("NoSuchEntity", `Policy ${input.PolicyArn} was not found.`);
        }
        const attachedPolicyArns = role.attachedPolicyArns.filter((arn) => arn !== input.PolicyArn);
        await store.putRole({ ...role, attachedPolicyArns });
        return {};
      },
    },
    ListAttachedRolePolicies: {
      resource: roleArn,
      async handle(input) {
        const role = await requireRole(options, input.RoleName);
        const { items, ...page } = iamPageOf(role.attachedPolicyArns, (arn) => arn, {
          operation: "ListAttachedRolePolicies",
          input,
        });
        const attached = items.map((arn) => ({ PolicyArn: arn, PolicyName: arn.slice(arn.lastIndexOf("/") + 1) }));
        return { AttachedPolicies: attached, ...page };
      },
    },
  };
}

function inlineRows(options: IamOptions): InlineRows {
  const { store } = options;
  return {
    PutRolePolicy: {
      resource: roleArn,
      async handle(input) {
        const role = await requireRole(options, input.RoleName);
        checkPolicyDocument(input.PolicyDocument);
        const inlinePolicies = { ...role.inlinePolicies, [input.PolicyName]: input.PolicyDocument };
        if (Object.keys(inlinePolicies).length > inlinePoliciesPerRoleMax) {
          throw iamQuotaExceeded("InlinePoliciesPerRole", inlinePoliciesPerRoleMax);
        }
        await store.putRole({ ...role, inlinePolicies });
        return {};
      },
    },
    GetRolePolicy: {
      resource: roleArn,
      async handle(input) {
        const role = await requireRole(options, input.RoleName);
        const document = inlinePolicy(role, input.PolicyName);
        return { RoleName: role.name, PolicyName: input.PolicyName, PolicyDocument: encodePolicyDocument(document) };
      },
    },
    ListRolePolicies: {
      resource: roleArn,
      async handle(input) {
        const role = await requireRole(options, input.RoleName);
        const { items, ...page } = iamPageOf(Object.keys(role.inlinePolicies), (name) => name, {
          operation: "ListRolePolicies",
          input,
        });
        return { PolicyNames: items, ...page };
      },
    },
    DeleteRolePolicy: {
      resource: roleArn,
      async handle(input) {
        const role = await requireRole(options, input.RoleName);
        inlinePolicy(role, input.PolicyName);
        const left = Object.entries(role.inlinePolicies).filter(([name]) => name !== input.PolicyName);
        await store.putRole({ ...role, inlinePolicies: Object.fromEntries(left) });
        return {};
      },
    },
  };
}

function inlinePolicy(role: RoleRecord, name: string): string {
  const document = Object.hasOwn(role.inlinePolicies, name) ? role.inlinePolicies[name] : undefined;
  if (document === undefined) {
    throw new AwsError("NoSuchEntity", `The role policy with name ${name} cannot be found.`);
  }
  return document;
}
