import type { IamOperations } from "../../spec/gen/iam.ts";
import type { CallContext, OperationRows } from "../../wire/index.ts";

export type IamRows = OperationRows<IamOperations>;

/** Returns the ARN of a role by name, without the role's path: `resource` cannot look up the stored role. */
export function roleArn({ RoleName }: { readonly RoleName: string }, { accountId }: CallContext): string {
  return `arn:aws:iam::${accountId}:role/${RoleName}`;
}
