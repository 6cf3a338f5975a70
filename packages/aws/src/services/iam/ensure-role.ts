import type { IamOptions } from "./iam-words.ts";
import { newRole } from "./roles.ts";

const sagemakerTrust = JSON.stringify({
  Version: "2012-10-17",
  Statement: [{ Effect: "Allow", Principal: { Service: "sagemaker.amazonaws.com" }, Action: "sts:AssumeRole" }],
});

/** Creates the default execution role unless it exists. Callers without a role of their own have this role. */
export async function ensureRole(options: IamOptions, accountId: string, name: string): Promise<void> {
  const kept = await options.store.role(name);
  if (kept !== null) {
    // If the account id has changed since the role was created, the stored ARN is updated.
    const { arn } = newRole(options, name, { accountId, path: kept.path });
    if (arn !== kept.arn) await options.store.putRole({ ...kept, arn });
    return;
  }
  const managed = "arn:aws:iam::aws:policy/AmazonSageMakerFullAccess";
  const role = newRole(options, name, { accountId, assumeRolePolicy: sagemakerTrust, attachedPolicyArns: [managed] });
  await options.store.putRole(role);
}
