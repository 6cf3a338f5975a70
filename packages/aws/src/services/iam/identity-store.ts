/** A role as IAM knows it. Policies are JSON texts as they were given. */
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

/** Where roles and policies are kept. A put is acknowledged when it is as durable as the store is. Names differ by more than case. */
export interface IdentityStore {
  role(name: string): Promise<RoleRecord | null>;
  roles(): Promise<readonly RoleRecord[]>;
  putRole(role: RoleRecord): Promise<void>;
  deleteRole(name: string): Promise<void>;
  policy(arn: string): Promise<PolicyRecord | null>;
  policies(): Promise<readonly PolicyRecord[]>;
  putPolicy(policy: PolicyRecord): Promise<void>;
  deletePolicy(arn: string): Promise<void>;
}

/** Keeps roles and policies for the life of the process; the service bounds how many there are. */
export function createMemoryIdentityStore(): IdentityStore {
  const roles = new Map<string, RoleRecord>();
  const policies = new Map<string, PolicyRecord>();
  return {
    role: (name) => Promise.resolve(roles.get(name.toLowerCase()) ?? null),
    roles: () => Promise.resolve([...roles.values()]),
    putRole(role) {
      roles.set(role.name.toLowerCase(), role);
      return Promise.resolve();
    },
    deleteRole(name) {
      roles.delete(name.toLowerCase());
      return Promise.resolve();
    },
    policy: (arn) => Promise.resolve(policies.get(arn) ?? null),
    policies: () => Promise.resolve([...policies.values()]),
    putPolicy(policy) {
      policies.set(policy.arn, policy);
      return Promise.resolve();
    },
    deletePolicy(arn) {
      policies.delete(arn);
      return Promise.resolve();
    },
  };
}
