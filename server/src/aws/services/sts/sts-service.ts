import type { AssumeRoleRequest } from "@aws-sdk/client-sts";
import { AwsError, type Clock } from "../../../base/index.ts";
import type { CallContext, OperationHandlers } from "../../wire/index.ts";
import type { Credential } from "../../../signing/index.ts";
import { newId, type IamOptions, type IdentityStore } from "../iam/index.ts";

export interface StsOptions {
  readonly clock: Clock;
  readonly randomBytes: IamOptions["randomBytes"];
  readonly identities: IdentityStore;
  /** The role that callers without a session of `AssumeRole` are seen as. */
  readonly roleName: string;
  readonly sessionName: string;
  /** Sessions alive at a time; the one that ends first gives way. */
  readonly sessionsMax: number;
}

export interface StsService {
  readonly operations: OperationHandlers;
  /** What `AssumeRole` or `GetSessionToken` gave, expired or not. */
  credential(accessKeyId: string): Credential | undefined;
}

interface Session extends Credential {
  readonly expiresMs: number;
  readonly sessionToken: string;
  readonly roleName: string;
  readonly roleId: string;
  readonly sessionName: string;
}

type Identity = Pick<Session, "roleName" | "roleId" | "sessionName">;

/** Says who is calling, and lends credentials. The identity is always an assumed role, because the SageMaker SDK asks for one. */
export function createStsService(options: StsOptions): StsService {
  const sessions = new Map<string, Session>();
  const alive = (accessKeyId: string | null): Session | undefined => {
    const session = accessKeyId === null ? undefined : sessions.get(accessKeyId);
    return session !== undefined && session.expiresMs > options.clock.epochMs() ? session : undefined;
  };
  const open = (durationSeconds: number, accountId: string, identity: Identity) => {
    makeRoom(sessions, options);
    const session = newSession(options, durationSeconds, accountId, identity);
    sessions.set(session.accessKeyId, session);
    return printCredentials(session);
  };
  const caller = async (context: CallContext): Promise<Identity> => {
    const session = alive(context.accessKeyId);
    if (session !== undefined) return session;
    const { roleName, sessionName } = options;
    return { roleName, sessionName, roleId: (await options.identities.role(roleName))?.id ?? "AROAAAAAAAAAAAAAAAAAA" };
  };
  return {
    credential: (accessKeyId) => sessions.get(accessKeyId),
    operations: {
      async GetCallerIdentity(_input: unknown, context: CallContext) {
        const { roleName, roleId, sessionName } = await caller(context);
        return {
          UserId: `${roleId}:${sessionName}`,
          Account: context.accountId,
          Arn: sessionArn(context, roleName, sessionName),
        };
      },
      async AssumeRole(input: AssumeRoleRequest, context: CallContext) {
        const roleArn = input.RoleArn as string;
        const sessionName = input.RoleSessionName as string;
        const role = await options.identities.role(roleArn.slice(roleArn.lastIndexOf("/") + 1));
        if (role === null || role.arn !== roleArn) {
          const me = await caller(context);
          const arn = sessionArn(context, me.roleName, me.sessionName);
          const text = `User: ${arn} is not authorized to perform: sts:AssumeRole on resource: ${roleArn}`;
          throw new AwsError("AccessDenied", text, { statusFallback: 403 });
        }
        const durationSeconds = input.DurationSeconds ?? 3600;
        if (durationSeconds > role.sessionSecondsMax) {
          const text = "The requested DurationSeconds exceeds the MaxSessionDuration set for this role.";
          throw new AwsError("ValidationError", text);
        }
        const given = open(durationSeconds, context.accountId, { roleName: role.name, roleId: role.id, sessionName });
        return {
          Credentials: given,
          AssumedRoleUser: {
            AssumedRoleId: `${role.id}:${sessionName}`,
            Arn: sessionArn(context, role.name, sessionName),
          },
        };
      },
      async GetSessionToken(input: { readonly DurationSeconds?: number }, context: CallContext) {
        return { Credentials: open(input.DurationSeconds ?? 43_200, context.accountId, await caller(context)) };
      },
      GetAccessKeyInfo: (_input: unknown, context: CallContext) => Promise.resolve({ Account: context.accountId }),
    },
  };
}

function newSession(
  { clock, randomBytes }: StsOptions,
  durationSeconds: number,
  accountId: string,
  { roleName, roleId, sessionName }: Identity,
): Session {
  return {
    roleName,
    roleId,
    sessionName,
    accountId,
    accessKeyId: newId("ASIA", randomBytes).slice(0, 20),
    secretAccessKey: Buffer.from(randomBytes(30)).toString("base64"),
    sessionToken: Buffer.from(randomBytes(96)).toString("base64"),
    expiresMs: clock.epochMs() + durationSeconds * 1000,
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

function makeRoom(sessions: Map<string, Session>, { clock, sessionsMax }: StsOptions): void {
  if (sessions.size < sessionsMax) return;
  const nowMs = clock.epochMs();
  let first: { readonly accessKeyId: string; readonly expiresMs: number } | null = null;
  for (const [accessKeyId, { expiresMs }] of sessions) {
    if (expiresMs <= nowMs) sessions.delete(accessKeyId);
    else if (first === null || expiresMs < first.expiresMs) first = { accessKeyId, expiresMs };
  }
  if (sessions.size >= sessionsMax && first !== null) sessions.delete(first.accessKeyId);
}
