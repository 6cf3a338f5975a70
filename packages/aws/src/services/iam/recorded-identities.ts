import type { Logger } from "@galatea/base";
import { RecordedValues, type Documents } from "@galatea/hosting/records";
import type { IdentityStore, PolicyRecord, RoleRecord } from "./identity-store.ts";

/** IAM's roles and policies as documents: they outlive the platform. Role names differ by more than case. */
export function recordedIdentities(documents: Documents, logger: Logger): IdentityStore {
  const roles = new RecordedValues<RoleRecord>(documents, "role", logger);
  const policies = new RecordedValues<PolicyRecord>(documents, "policy", logger);
  return {
    role: (name) => roles.get(name.toLowerCase()),
    roles: () => roles.all(),
    putRole: (role) => roles.put(role.name.toLowerCase(), role),
    deleteRole: (name) => roles.delete(name.toLowerCase()),
    policy: (arn) => policies.get(arn),
    policies: () => policies.all(),
    putPolicy: (policy) => policies.put(policy.arn, policy),
    deletePolicy: (arn) => policies.delete(arn),
  };
}
