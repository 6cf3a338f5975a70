import type {
  CreateRoleRequest,
  ListRolesRequest,
  PutRolePolicyRequest,
  UpdateAssumeRolePolicyRequest,
} from "@aws-sdk/client-iam";
import { AwsError } from "../../../base/index.ts";
import type { CallContext, OperationHandlers } from "../../wire/index.ts";
import { checkDocument, encodeDocument, newId, pageOf, type IamOptions } from "./iam-words.ts";
import type { RoleRecord } from "./identity-store.ts";

const rolesMax = 1000;
const policiesPerRoleMax = 20;
const inlinePoliciesPerRoleMax = 20;

interface NamedRole {
  readonly RoleName: string;
}

export async function existingRole({ store }: IamOptions, name: string): Promise<RoleRecord> {
  const role = await store.role(name);
  if (role === null) throw new AwsError("NoSuchEntity", `The role with name ${name} cannot be found.`);
  return role;
}

export function newRole(
  options: IamOptions,
  name: string,
  more: Partial<RoleRecord> & { readonly accountId: string },
): RoleRecord {
  const { accountId, ...given } = more;
  const path = given.path ?? "/";
  return {
    name,
    id: newId("AROA", options.randomBytes),
    createdMs: options.clock.epochMs(),
    assumeRolePolicy: "{}",
    description: "",
    sessionSecondsMax: 3600,
    attachedPolicyArns: [],
    inlinePolicies: {},
    tags: [],
    ...given,
    path,
    arn: `arn:aws:iam::${accountId}:role${path}${name}`,
  };
}

export function roleHandlers(options: IamOptions): OperationHandlers {
  const { store } = options;
  return {
    async GetRole(input: NamedRole) {
      return { Role: printRole(await existingRole(options, input.RoleName)) };
    },
    async CreateRole(input: CreateRoleRequest, context: CallContext) {
      const name = input.RoleName as string;
      checkDocument(input.AssumeRolePolicyDocument as string);
      if ((await store.role(name)) !== null) {
        throw new AwsError("EntityAlreadyExists", `Role with name ${name} already exists.`);
      }
      if ((await store.roles()).length >= rolesMax) throw quota("RolesPerAccount", rolesMax);
      const role = newRole(options, name, {
        accountId: context.accountId,
        path: input.Path ?? "/",
        assumeRolePolicy: input.AssumeRolePolicyDocument as string,
        description: input.Description ?? "",
        sessionSecondsMax: input.MaxSessionDuration ?? 3600,
        tags: (input.Tags ?? []).map(({ Key = "", Value = "" }) => ({ key: Key, value: Value })),
      });
      await store.putRole(role);
      return { Role: printRole(role) };
    },
    async DeleteRole(input: NamedRole) {
      const role = await existingRole(options, input.RoleName);
      if (role.attachedPolicyArns.length > 0) {
        throw new AwsError("DeleteConflict", "Cannot delete entity, must detach all policies first.");
      }
      if (Object.keys(role.inlinePolicies).length > 0) {
        throw new AwsError("DeleteConflict", "Cannot delete entity, must delete policies first.");
      }
      await store.deleteRole(role.name);
      return {};
    },
    async ListRoles(input: ListRolesRequest) {
      const roles = (await store.roles()).filter((role) => role.path.startsWith(input.PathPrefix ?? "/"));
      const { items, ...page } = pageOf(roles, (role) => role.name, input);
      return { Roles: items.map(printRole), ...page };
    },
    async UpdateAssumeRolePolicy(input: UpdateAssumeRolePolicyRequest) {
      const role = await existingRole(options, input.RoleName as string);
      checkDocument(input.PolicyDocument as string);
      await store.putRole({ ...role, assumeRolePolicy: input.PolicyDocument as string });
      return {};
    },
  };
}

export function rolePolicyHandlers(options: IamOptions): OperationHandlers {
  const { store } = options;
  return {
    async AttachRolePolicy(input: NamedRole & { readonly PolicyArn: string }) {
      const role = await existingRole(options, input.RoleName);
      if (role.attachedPolicyArns.includes(input.PolicyArn)) return {};
      const isManagedByAws = /^arn:aws[a-z-]*:iam::aws:policy\//.test(input.PolicyArn);
      if (!isManagedByAws && (await store.policy(input.PolicyArn)) === null) {
        throw new AwsError("NoSuchEntity", `Policy ${input.PolicyArn} does not exist or is not attachable.`);
      }
      if (role.attachedPolicyArns.length >= policiesPerRoleMax) throw quota("PoliciesPerRole", policiesPerRoleMax);
      await store.putRole({ ...role, attachedPolicyArns: [...role.attachedPolicyArns, input.PolicyArn] });
      return {};
    },
    async DetachRolePolicy(input: NamedRole & { readonly PolicyArn: string }) {
      const role = await existingRole(options, input.RoleName);
      if (!role.attachedPolicyArns.includes(input.PolicyArn)) {
        throw new AwsError("NoSuchEntity", `Policy ${input.PolicyArn} was not found.`);
      }
      const attachedPolicyArns = role.attachedPolicyArns.filter((arn) => arn !== input.PolicyArn);
      await store.putRole({ ...role, attachedPolicyArns });
      return {};
    },
    async ListAttachedRolePolicies(input: NamedRole & { readonly Marker?: string; readonly MaxItems?: number }) {
      const role = await existingRole(options, input.RoleName);
      const { items, ...page } = pageOf(role.attachedPolicyArns, (arn) => arn, input);
      const attached = items.map((arn) => ({ PolicyArn: arn, PolicyName: arn.slice(arn.lastIndexOf("/") + 1) }));
      return { AttachedPolicies: attached, ...page };
    },
    async PutRolePolicy(input: PutRolePolicyRequest) {
      const role = await existingRole(options, input.RoleName as string);
      checkDocument(input.PolicyDocument as string);
      const inlinePolicies = { ...role.inlinePolicies, [input.PolicyName as string]: input.PolicyDocument as string };
      if (Object.keys(inlinePolicies).length > inlinePoliciesPerRoleMax) {
        throw quota("InlinePoliciesPerRole", inlinePoliciesPerRoleMax);
      }
      await store.putRole({ ...role, inlinePolicies });
      return {};
    },
    async GetRolePolicy(input: NamedRole & { readonly PolicyName: string }) {
      const role = await existingRole(options, input.RoleName);
      const document = inlinePolicy(role, input.PolicyName);
      return { RoleName: role.name, PolicyName: input.PolicyName, PolicyDocument: encodeDocument(document) };
    },
    async ListRolePolicies(input: NamedRole & { readonly Marker?: string; readonly MaxItems?: number }) {
      const role = await existingRole(options, input.RoleName);
      const { items, ...page } = pageOf(Object.keys(role.inlinePolicies), (name) => name, input);
      return { PolicyNames: items, ...page };
    },
    async DeleteRolePolicy(input: NamedRole & { readonly PolicyName: string }) {
      const role = await existingRole(options, input.RoleName);
      inlinePolicy(role, input.PolicyName);
      const left = Object.entries(role.inlinePolicies).filter(([name]) => name !== input.PolicyName);
      await store.putRole({ ...role, inlinePolicies: Object.fromEntries(left) });
      return {};
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

function printRole(role: RoleRecord): Record<string, unknown> {
  return {
    Path: role.path,
    RoleName: role.name,
    RoleId: role.id,
    Arn: role.arn,
    CreateDate: new Date(role.createdMs),
    AssumeRolePolicyDocument: encodeDocument(role.assumeRolePolicy),
    Description: role.description === "" ? undefined : role.description,
    MaxSessionDuration: role.sessionSecondsMax,
    Tags: role.tags.length === 0 ? undefined : role.tags.map(({ key, value }) => ({ Key: key, Value: value })),
  };
}

export function quota(name: string, max: number): AwsError {
  return new AwsError("LimitExceeded", `Cannot exceed quota for ${name}: ${max}`);
}
