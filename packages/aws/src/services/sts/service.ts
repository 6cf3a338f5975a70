import { AwsError } from "@galatea/base";
import sts from "../../spec/gen/sts.json" with { type: "json" };
import type { StsOperations } from "../../spec/gen/sts.ts";
import { asServiceModel } from "../../spec/index.ts";
import { type CallContext, type ModelledService, type OperationRows } from "../../wire/index.ts";
import type { IdentityStore } from "../iam/index.ts";
import type { Session, SessionIdentity, StsSessions } from "./sessions.ts";

export interface StsDependencies {
  readonly sessions: StsSessions;
  readonly identities: IdentityStore;
  /** The role and session name that GetCallerIdentity returns for callers without a session of `AssumeRole`. */
  readonly executionRole: { readonly roleName: string; readonly sessionName: string };
}

const roleSecondsDefault = 3600;
const sessionSecondsDefault = 43_200;

/**
 * Returns the caller's identity, and issues credentials. The identity is always an assumed role, because the SageMaker
 * SDK requires one.
 */
export function stsService(dependencies: StsDependencies) {
  return {
    kind: "modelled",
    model: asServiceModel(sts),
    scope: "sts",
    iamPrefix: "sts",
    validationCodes: { json: "ValidationError", query: "ValidationError" },
    operations: stsOperations(dependencies),
  } as const satisfies ModelledService;
}

function stsOperations({ sessions, identities, executionRole }: StsDependencies): OperationRows<StsOperations> {
  const caller = async ({ accessKeyId }: CallContext): Promise<SessionIdentity> => {
    const session = sessions.findActive(accessKeyId);
    if (session !== null) return session;
    const role = await identities.role(executionRole.roleName);
    return { ...executionRole, roleId: role?.id ?? "AROAAAAAAAAAAAAAAAAAA" };
  };
  return {
    GetCallerIdentity: {
      async handle(_, context) {
        const { roleName, roleId, sessionName } = await caller(context);
        return {
          UserId: `${roleId}:${sessionName}`,
          Account: context.accountId,
          Arn: sessionArn(context, roleName, sessionName),
        };
      },
    },
    AssumeRole: {
      resource: (input) => input.RoleArn,
      // Members that would give a session fewer permissions than its role has.
      unsupportedMembers: [
        { path: "Policy" },
        { path: "PolicyArns", harmless: (arns) => Array.isArray(arns) && arns.length === 0 },
      ],
      async handle({ RoleArn: roleArn, RoleSessionName: sessionName, DurationSeconds: seconds }, context) {
        const role = await identities.role(roleArn.slice(roleArn.lastIndexOf("/") + 1));
        if (role === null || role.arn !== roleArn) {
          const me = await caller(context);
          const arn = sessionArn(context, me.roleName, me.sessionName);
          const text = `User: ${arn} is not authorized to perform: sts:AssumeRole on resource: ${roleArn}`;
          throw new AwsError("AccessDenied", text, { statusFallback: 403 });
        }
        const durationSeconds = seconds ?? roleSecondsDefault;
        if (durationSeconds > role.sessionSecondsMax) {
          const text = "The requested DurationSeconds exceeds the MaxSessionDuration set for this role.";
          throw new AwsError("ValidationError", text);
        }
        const identity = { roleName: role.name, roleId: role.id, sessionName };
        return {
          Credentials: printCredentials(sessions.open(identity, context, durationSeconds)),
          AssumedRoleUser: {
            AssumedRoleId: `${role.id}:${sessionName}`,
            Arn: sessionArn(context, role.name, sessionName),
          },
        };
      },
    },
    GetSessionToken: {
      async handle({ DurationSeconds: seconds = sessionSecondsDefault }, context) {
        const { roleName, roleId, sessionName } = await caller(context);
        const session = sessions.open({ roleName, roleId, sessionName }, context, seconds);
        return { Credentials: printCredentials(session) };
      },
    },
    GetAccessKeyInfo: {
      handle: (_, context) => Promise.resolve({ Account: context.accountId }),
    },
  };
}

function printCredentials({ accessKeyId, secretAccessKey, sessionToken, expiresMs }: Session) {
  return {
    AccessKeyId: accessKeyId,
    SecretAccessKey: secretAccessKey,
    SessionToken: sessionToken,
    Expiration: new Date(expiresMs),
  };
}

function sessionArn({ accountId }: CallContext, roleName: string, sessionName: string): string {
  return `arn:aws:sts::${accountId}:assumed-role/${roleName}/${sessionName}`;
}
