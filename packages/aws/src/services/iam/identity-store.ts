import type { Logger } from "@galatea/base";
import { RecordedValues, type Documents } from "@galatea/hosting/records";

/** A role in IAM. Policies are JSON texts as in the request. */
export interface RoleRecord {
  readonly name: string;
  readonly path: string;
  readonly id: string;
  readonly arn: string;
  readonly createdMs: number;
  readonly assumeRolePolicy: string;
  readonly description: string;
  readonly sessionSecondsMax: number;
  readonly attachedPolicyArns: readonly string[];
  readonly inlinePolicies: Readonly<Record<string, string>>;
  readonly tags: readonly { readonly key: string; readonly value: string }[];
}

export interface PolicyRecord {
  readonly name: string;
  readonly path: string;
  readonly id: string;
  readonly arn: string;
  readonly createdMs: number;
  readonly document: string;
  readonly description: string;
  readonly tags: readonly { readonly key: string; readonly value: string }[];
}

/** IAM's roles and policies, stored as documents. */
export type IdentityStore = ReturnType<typeof openIdentityStore>;

/**
 * Opens the store of roles and policies in `documents`. The key of a role is its name in lower case, because IAM does
 * not allow two names that differ only by case. The key of a policy is its ARN.
 */
export function openIdentityStore(documents: Documents, logger: Logger) {
  const roles = new RecordedValues<RoleRecord>(documents, "role", logger);
  const policies = new RecordedValues<PolicyRecord>(documents, "policy", logger);
  return {
    role: (name: string) => roles.get(name.toLowerCase()),
    roles: () => roles.all(),
    putRole: (role: RoleRecord) => roles.put(role.name.toLowerCase(), role),
    deleteRole: (name: string) => roles.delete(name.toLowerCase()),
    policy: (arn: string) => policies.get(arn),
    policies: () => policies.all(),
    putPolicy: (policy: PolicyRecord) => policies.put(policy.arn, policy),
    deletePolicy: (arn: string) => policies.delete(arn),
  };
}
