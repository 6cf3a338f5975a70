import type { IamOperations } from "../../spec/gen/iam.ts";
import type { CallContext, OperationRows } from "../../wire/index.ts";

export type IamRows = OperationRows<IamOperations>;

/** Returns the ARN of a role by its name; the path before the name is not looked up. */
export function roleArn({ RoleName }: { readonly RoleName: string }, { accountId }: CallContext): string {
  return `arn:aws:iam::${accountId}:role/${RoleName}`;
}
