import { AwsError } from "@galatea/base";
import type { IamInputs } from "../../spec/gen/iam.ts";
import {
  checkPolicyDocument,
  encodePolicyDocument,
  createIamId,
  iamPageOf,
  iamQuotaExceeded,
  type IamOptions,
} from "./iam-words.ts";
import type { RoleRecord } from "./identity-store.ts";
import { roleArn, type IamRows } from "./rows.ts";

const rolesMax = 1000;

export async function requireRole({ store }: IamOptions, name: string): Promise<RoleRecord> {
  const role = await store.role(name);
  if (role === null) throw new AwsError("NoSuchEntity", `The role with name ${name} cannot be found.`);
  return role;
}

export function newRole(
  options: IamOptions,
  name: string,
  more: Partial<RoleRecord> & { readonly accountId: string },
): RoleRecord {
  const { accountId, ...input } = more;
  const path = input.path ?? "/";
  return {
    name,
    id: createIamId("AROA", options.randomBytes),
    createdMs: options.clock.epochMs(),
    assumeRolePolicy: "{}",
    description: "",
    sessionSecondsMax: 3600,
    attachedPolicyArns: [],
    inlinePolicies: {},
    tags: [],
    ...input,
    path,
    arn: `arn:aws:iam::${accountId}:role${path}${name}`,
  };
}

export function roleRows(options: IamOptions) {
  const { store } = options;
  return {
    GetRole: {
      resource: roleArn,
      async handle(input) {
        return { Role: printRole(await requireRole(options, input.RoleName)) };
      },
    },
    CreateRole: {
      unsupportedMembers: [{ path: "PermissionsBoundary" }],
      resource: (input, { accountId }) => `arn:aws:iam::${accountId}:role${input.Path ?? "/"}${input.RoleName}`,
      handle: async (input, { accountId }) => ({ Role: printRole(await createRole(options, input, accountId)) }),
    },
    DeleteRole: {
      resource: roleArn,
      async handle(input) {
        const role = await requireRole(options, input.RoleName);
        if (role.attachedPolicyArns.length > 0) {
          throw new AwsError("DeleteConflict", "Cannot delete entity, must detach all policies first.");
        }
        if (Object.keys(role.inlinePolicies).length > 0) {
          throw new AwsError("DeleteConflict", "Cannot delete entity, must delete policies first.");
        }
        await store.deleteRole(role.name);
        return {};
      },
    },
    ListRoles: {
      resource: (input, { accountId }) => `arn:aws:iam::${accountId}:role${input.PathPrefix ?? "/"}`,
      async handle(input) {
        const roles = (await store.roles()).filter((role) => role.path.startsWith(input.PathPrefix ?? "/"));
        const { items, ...page } = iamPageOf(roles, (role) => role.name, { operation: "ListRoles", input });
        return { Roles: items.map(printRole), ...page };
      },
    },
    UpdateAssumeRolePolicy: {
      resource: roleArn,
      async handle(input) {
        const role = await requireRole(options, input.RoleName);
        checkPolicyDocument(input.PolicyDocument);
        await store.putRole({ ...role, assumeRolePolicy: input.PolicyDocument });
        return {};
      },
    },
  } satisfies Partial<IamRows>;
}

async function createRole(
  options: IamOptions,
  input: IamInputs["CreateRoleRequest"],
  accountId: string,
): Promise<RoleRecord> {
  const { store } = options;
  const { RoleName: name } = input;
  checkPolicyDocument(input.AssumeRolePolicyDocument);
  if ((await store.role(name)) !== null) {
    throw new AwsError("EntityAlreadyExists", `Role with name ${name} already exists.`);
  }
  if ((await store.roles()).length >= rolesMax) throw iamQuotaExceeded("RolesPerAccount", rolesMax);
  const role = newRole(options, name, {
    accountId,
    path: input.Path ?? "/",
    assumeRolePolicy: input.AssumeRolePolicyDocument,
    description: input.Description ?? "",
    sessionSecondsMax: input.MaxSessionDuration ?? 3600,
    tags: (input.Tags ?? []).map(({ Key, Value }) => ({ key: Key, value: Value })),
  });
  await store.putRole(role);
  return role;
}

function printRole(role: RoleRecord) {
  return {
    Path: role.path,
    RoleName: role.name,
    RoleId: role.id,
    Arn: role.arn,
    CreateDate: new Date(role.createdMs),
    AssumeRolePolicyDocument: encodePolicyDocument(role.assumeRolePolicy),
    Description: role.description === "" ? undefined : role.description,
    MaxSessionDuration: role.sessionSecondsMax,
    Tags: role.tags.length === 0 ? undefined : role.tags.map(({ key, value }) => ({ Key: key, Value: value })),
  };
}
