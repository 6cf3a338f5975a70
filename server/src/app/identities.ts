import type { IdentityStore, PolicyRecord, RoleRecord } from "../aws/index.ts";
import type { Logger } from "../base/index.ts";
import { RecordTable } from "../hosting/index.ts";
import type { Records } from "../records/index.ts";

/** IAM's roles and policies as records: they outlive the platform. Role names differ by more than case. */
export function recordedIdentities(records: Records, logger: Logger): IdentityStore {
  const roles = new RecordTable<RoleRecord>(records, { kind: "role", logger });
  const policies = new RecordTable<PolicyRecord>(records, { kind: "policy", logger });
  return {
    role: (name) => Promise.resolve(roles.get(name.toLowerCase()) ?? null),
    roles: () => Promise.resolve([...roles.values()]),
    putRole: (role) => roles.put(role.name.toLowerCase(), role),
    deleteRole: (name) => roles.delete(name.toLowerCase()),
    policy: (arn) => Promise.resolve(policies.get(arn) ?? null),
    policies: () => Promise.resolve([...policies.values()]),
    putPolicy: (policy) => policies.put(policy.arn, policy),
    deletePolicy: (arn) => policies.delete(arn),
  };
}
